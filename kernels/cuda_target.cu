// A CUDA device as a target: guarded buffers, one stream, events as the clock.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "indexpool/kernels/cuda_buffers.hpp"
#include "indexpool/kernels/device_cuda.cuh"

namespace indexpool::kernels {
namespace {

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

std::string version_text(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "580.159.04" where the kernel module tells, else the CUDA version it supports.
std::string driver_text(int cuda_version) {
  std::ifstream module("/proc/driver/nvidia/version");
  std::string word;
  while (module >> word) {
    if (std::count(word.begin(), word.end(), '.') == 2 &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return "CUDA " + version_text(cuda_version);
}

// The device's own kernels must be in this build: the compiled architectures are fixed.
void check_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw EnvironmentError(std::string("no CUDA device: ") +
                           (status == cudaSuccess ? "none found" : cudaGetErrorString(status)) +
                           "; use --target simt, or run where nvidia-smi lists a device");
}

// Keeps the stream busy while the host queues what is timed, so that the time between two events is
// the device's and not the host's. Leaves the L2 as it is.
__global__ void hold_stream(long long clocks) {
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
}
constexpr long long hold_clocks = 40'000;  // some 20 us: an event, a launch and an event are queued

class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& body, int launches) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "a capture");
    for (int i = 0; i < launches; ++i) body();
    check_cuda(cudaStreamEndCapture(stream, &graph_), "ending a capture");
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0), "instantiating a graph");
  }
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const {
    check_cuda(cudaGraphLaunch(executable_, stream), "launching a graph");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

double percentile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Of `seconds`, sorted here.
Measurement summary(std::vector<double> seconds, const char* cache, const char* clock) {
  std::sort(seconds.begin(), seconds.end());
  Measurement result;
  result.median = Seconds(percentile(seconds, 0.5));
  result.p10 = Seconds(percentile(seconds, 0.1));
  result.p90 = Seconds(percentile(seconds, 0.9));
  result.samples = static_cast<std::int64_t>(seconds.size());
  result.cache = cache;
  result.clock = clock;
  return result;
}

class CudaTarget final : public Target {
 public:
  CudaTarget() { context_.stream = stream_.get(); }
  ~CudaTarget() override { cudaStreamSynchronize(stream_.get()); }

  std::string_view name() const override { return "cuda"; }
  Environment environment() const override;
  int compute_capability() const override {
    LaunchContext context;
    return ip_compute_capability(context);
  }
  std::byte* allocate(std::string buffer, std::int64_t bytes, std::byte poison, bool) override {
    return buffers_.allocate(std::move(buffer), bytes, poison);
  }
  void release(std::byte* buffer) override {
    synchronize();
    buffers_.release(buffer);
  }
  void upload(std::byte* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const std::byte* from, std::int64_t bytes) override;
  void fill_random(std::byte* to, std::int64_t bytes, const RandomFill& fill) override {
    require(bytes % 4 == 0, "random memory comes in words of 4 bytes");
    buffers_.check_range(to, bytes);
    fill_on_device(reinterpret_cast<std::uint32_t*>(to), bytes / 4, fill, stream_.get());
    synchronize();
  }
  std::string check_guards() override {
    synchronize();
    return buffers_.check_guards();
  }
  LaunchContext& context() override { return context_; }
  void synchronize() override {
    check_cuda(cudaStreamSynchronize(stream_.get()), "running on the device");
  }
  std::optional<Measurement> measure(const std::function<void()>& body, int samples,
                                     bool cold_l2) override;
  std::optional<Measurement> replay(const std::function<void()>& body, int launches,
                                    int samples) override;

 private:
  void hold() {
    hold_stream<<<1, 1, 0, stream_.get()>>>(hold_clocks);
    check_cuda(cudaGetLastError(), "holding the stream");
  }
  double time_once(const std::function<void()>& body, const Event& start, const Event& stop);

  Stream stream_;
  CudaBuffers buffers_;
  LaunchContext context_;
};

Environment CudaTarget::environment() const {
  int device = 0, driver = 0, runtime = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  int clock_khz = 0;
  check_cuda(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device), "clock rate");
  Environment environment;
  environment.target = "cuda";
  environment.device = properties.name;
  environment.driver = driver_text(driver);
  environment.toolkit = "CUDA " + version_text(runtime);
  environment.compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                         std::to_string(__CUDACC_VER_MINOR__) + "." +
                         std::to_string(__CUDACC_VER_BUILD__);
  environment.clocks = "SM up to " + std::to_string(clock_khz / 1000) + " MHz";
  return environment;
}

void CudaTarget::upload(std::byte* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  buffers_.check_range(to, bytes);
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                             stream_.get()),
             "copying to the device");
  synchronize();
}

void CudaTarget::download(void* to, const std::byte* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  buffers_.check_range(from, bytes);
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                             stream_.get()),
             "copying from the device");
  synchronize();
}

double CudaTarget::time_once(const std::function<void()>& body, const Event& start,
                             const Event& stop) {
  check_cuda(cudaEventRecord(start.get(), stream_.get()), "recording an event");
  body();
  check_cuda(cudaEventRecord(stop.get(), stream_.get()), "recording an event");
  check_cuda(cudaEventSynchronize(stop.get()), "running on the device");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()), "reading the clock");
  return static_cast<double>(milliseconds) * 1e-3;
}

// Cold: twice the L2 is written before each sample, so that nothing the body reads is left in it.
// Warm: the body runs on what the sample before left.
std::optional<Measurement> CudaTarget::measure(const std::function<void()>& body, int samples,
                                               bool cold_l2) {
  require(samples > 0, "a measurement has at least one sample");
  int device = 0, l2_bytes = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "L2 size");
  const std::int64_t flush_bytes = cold_l2 ? 2 * std::int64_t{l2_bytes} : 0;
  std::byte* const flush =
      cold_l2 ? buffers_.allocate("L2 flush", flush_bytes, std::byte{0}) : nullptr;
  const Event start, stop;
  std::vector<double> seconds;
  body();  // first use: module loading, instruction cache
  synchronize();
  for (int i = 0; i < samples; ++i) {
    if (cold_l2) {
      check_cuda(
          cudaMemsetAsync(flush, i & 0xff, static_cast<std::size_t>(flush_bytes), stream_.get()),
          "flushing the L2");
    } else {
      hold();
    }
    seconds.push_back(time_once(body, start, stop));
  }
  if (cold_l2) release(flush);
  return summary(std::move(seconds), cold_l2 ? "cold" : "warm", "cuda_events");
}

std::optional<Measurement> CudaTarget::replay(const std::function<void()>& body, int launches,
                                              int samples) {
  require(launches > 0 && samples > 0, "a replay has at least one launch and one sample");
  body();  // outside the capture: module loading, attributes of the function
  synchronize();
  const Graph graph(stream_.get(), body, launches);
  const Event start, stop;
  std::vector<double> seconds;
  for (int i = -1; i < samples; ++i) {  // the first replay uploads the graph
    hold();
    const double all = time_once([&] { graph.launch(stream_.get()); }, start, stop);
    if (i >= 0) seconds.push_back(all / launches);
  }
  return summary(std::move(seconds), "warm", "graph_replay");
}

}  // namespace

std::unique_ptr<Target> make_cuda_target() {
  check_device();
  return std::make_unique<CudaTarget>();
}

}  // namespace indexpool::kernels
