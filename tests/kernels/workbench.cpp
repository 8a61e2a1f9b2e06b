#include "workbench.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::byte poison{0x7f};

std::vector<std::uint8_t> flat(DType dtype, const std::vector<Head>& heads) {
  std::vector<std::uint8_t> bytes;
  for (const Head& head : heads) {
    const auto row = host_store(dtype, head);
    bytes.insert(bytes.end(), row.begin(), row.end());
  }
  return bytes;
}

template <class T>
std::int64_t bytes_of_vector(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(T));
}

std::string describe(const Traffic& traffic) {
  std::ostringstream text;
  text << "loads " << traffic.global_load.value << " B in " << traffic.load_sectors
       << " sectors, stores " << traffic.global_store.value << " B in " << traffic.store_sectors
       << ", " << traffic.shuffles << " shuffles, " << traffic.block_barriers << " barriers";
  return text.str();
}

}  // namespace

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const NumericMode& mode : numeric_modes()) names.push_back(mode.name);
  return names;
}

Shape make_shape(const std::string& mode, std::int64_t head_dim, std::int64_t index_kpool) {
  Shape shape;
  shape.mode = numeric_mode(mode);
  shape.config.index_head_dim = head_dim;
  shape.config.index_kpool = index_kpool;
  shape.config.index_topk = 64 * index_kpool;
  return shape;
}

Rows random_rows(const Shape& shape, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal;
  const auto head = [&](float spread) {
    Head values(static_cast<std::size_t>(shape.config.index_head_dim));
    for (float& value : values) value = host_round(shape.mode.storage, spread * normal(bits));
    return values;
  };
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const float outlier = bits() % 16 == 0 ? 100.0f : 1.0f;
    rows.keys.push_back(head(outlier));
    rows.gate_scores.push_back(head(3));
  }
  return rows;
}

std::vector<Head> random_ape(const Shape& shape, std::uint64_t seed) {
  Shape as_f32 = shape;
  as_f32.mode.storage = DType::f32;
  return random_rows(as_f32, shape.config.index_kpool, seed).gate_scores;
}

std::vector<std::int32_t> random_block_table(std::int64_t pages, std::int64_t first_page,
                                             std::uint64_t seed) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(pages));
  std::iota(table.begin(), table.end(), static_cast<std::int32_t>(first_page));
  std::shuffle(table.begin(), table.end(), std::mt19937_64(seed));
  return table;
}

Workbench::Workbench(const Shape& shape, const std::vector<Head>& ape, Sizes sizes,
                     sim::simt::Options options)
    : Workbench(shape, ape, sizes, make_simt_target(std::move(options))) {}

Workbench::Workbench(const Shape& shape, const std::vector<Head>& ape, Sizes sizes,
                     std::unique_ptr<Target> target)
    : shape_(shape),
      sizes_(sizes),
      layout_(page_layout(shape, sizes.states_per_page)),
      target_(std::move(target)) {
  cache_.states_per_page = static_cast<std::int32_t>(sizes.states_per_page);
  cache_.page_stride = layout_.page_bytes() + sizes.padding;
  cache_.pages = target_->allocate("pages", sizes.pages * cache_.page_stride, poison);
  tail_.ring = static_cast<std::int32_t>(sizes.ring);
  const std::int64_t row_bytes = shape.config.index_head_dim * info(shape.mode.storage).bytes;
  tail_.block_stride = 2 * sizes.ring * row_bytes + sizes.padding;
  tail_.base = target_->allocate("tails", sizes.tail_blocks * tail_.block_stride, poison);
  const auto flat_ape = flat(DType::f32, ape);
  std::byte* const at = target_->allocate("ape", bytes_of_vector(flat_ape), poison);
  target_->upload(at, flat_ape.data(), bytes_of_vector(flat_ape));
  ape_ = reinterpret_cast<const float*>(at);
}

Workbench::~Workbench() = default;

std::byte* Workbench::upload(const std::string& name, const void* from, std::int64_t bytes) {
  std::byte* const buffer = target_->allocate(name, bytes, poison);
  target_->upload(buffer, from, bytes);
  step_buffers_.push_back(buffer);
  return buffer;
}

void Workbench::free_step_buffers() {
  for (std::byte* buffer : step_buffers_) target_->release(buffer);
  step_buffers_.clear();
}

void Workbench::launch(const OpArgs& args) {
  const Kernel& kernel = find_kernel(target_->name(), args);
  sim::simt::Session* const session = target_->context().simt;
  if (session != nullptr) session->counted = {};
  kernel.launch(args, target_->context());
  const Traffic declared = kernel.work(args).traffic;
  if (session != nullptr && session->options.count && !(declared == session->counted))
    throw std::runtime_error(std::string(kernel.name) + " declares " + describe(declared) +
                             " but causes " + describe(session->counted));
  const std::string damage = target_->check_guards();
  if (!damage.empty()) throw std::runtime_error(damage);
}

void Workbench::prefill(const Rows& rows, std::span<const StepRequest> step) {
  const PrefillPlan plan =
      plan_prefill(step, shape_.config.index_kpool, sizes_.states_per_page, sizes_.ring);
  const auto keys = flat(shape_.mode.storage, rows.keys);
  const auto gates = flat(shape_.mode.storage, rows.gate_scores);
  PoolArgs pool;
  pool.shape = shape_;
  pool.keys = upload("keys", keys.data(), bytes_of_vector(keys));
  pool.gate_scores = upload("gate scores", gates.data(), bytes_of_vector(gates));
  pool.ape = ape_;
  pool.jobs = reinterpret_cast<const PoolJob*>(
      upload("pool jobs", plan.pools.data(), bytes_of_vector(plan.pools)));
  pool.job_count = std::ssize(plan.pools);
  pool.tail = tail_;
  pool.cache = cache_;
  pool.host_jobs = plan.pools.data();
  checksums.assign(plan.pools.size(), {});
  std::byte* const sums = upload("checksums", checksums.data(), bytes_of_vector(checksums));
  if (sizes_.checksums) pool.checksums = reinterpret_cast<PoolChecksum*>(sums);
  launch(pool);
  target_->download(checksums.data(), sums, bytes_of_vector(checksums));

  SeedTailArgs seed;
  seed.shape = shape_;
  seed.keys = pool.keys;
  seed.gate_scores = pool.gate_scores;
  seed.jobs = reinterpret_cast<const TailJob*>(
      upload("tail jobs", plan.tails.data(), bytes_of_vector(plan.tails)));
  seed.job_count = std::ssize(plan.tails);
  seed.tail = tail_;
  launch(seed);
  free_step_buffers();
}

void Workbench::append(const Rows& rows, std::span<const StepRequest> step) {
  const AppendPlan plan = plan_append(step, shape_.config.index_kpool, sizes_.states_per_page);
  const auto keys = flat(shape_.mode.storage, rows.keys);
  const auto gates = flat(shape_.mode.storage, rows.gate_scores);
  AppendArgs args;
  args.shape = shape_;
  args.keys = upload("keys", keys.data(), bytes_of_vector(keys));
  args.gate_scores = upload("gate scores", gates.data(), bytes_of_vector(gates));
  args.ape = ape_;
  args.jobs = reinterpret_cast<const AppendJob*>(
      upload("append jobs", plan.jobs.data(), bytes_of_vector(plan.jobs)));
  args.job_count = std::ssize(plan.jobs);
  args.slots = reinterpret_cast<const std::int64_t*>(
      upload("slots", plan.slots.data(), bytes_of_vector(plan.slots)));
  args.tail = tail_;
  args.cache = cache_;
  args.pools_closed = plan.pools_closed;
  args.tokens = plan.tokens;
  args.host_jobs = plan.jobs.data();
  args.host_slots = plan.slots.data();
  checksums.assign(plan.slots.size(), {});
  std::byte* const sums = upload("checksums", checksums.data(), bytes_of_vector(checksums));
  if (sizes_.checksums) args.checksums = reinterpret_cast<PoolChecksum*>(sums);
  launch(args);
  target_->download(checksums.data(), sums, bytes_of_vector(checksums));
  free_step_buffers();
}

std::vector<std::byte> Workbench::pages() {
  std::vector<std::byte> bytes(static_cast<std::size_t>(sizes_.pages * cache_.page_stride));
  target_->download(bytes.data(), cache_.pages, std::ssize(bytes));
  return bytes;
}

HostPool Workbench::pool_at(std::int64_t slot) {
  const std::int64_t page = slot / sizes_.states_per_page, state = slot % sizes_.states_per_page;
  const std::byte* const base = cache_.pages + page * cache_.page_stride;
  HostPool pool;
  pool.stored.resize(static_cast<std::size_t>(layout_.code_bytes()));
  target_->download(pool.stored.data(), base + state * layout_.code_bytes(), layout_.code_bytes());
  if (layout_.scales)
    target_->download(&pool.scale, base + layout_.scale_offset() + 4 * state, sizeof(float));
  return pool;
}

}  // namespace indexpool::kernels
