// count_attended: the first launch of the feedback (article D): how many slots have any attention
// mass. counts[b] is block b's share; attention_feedback adds them up.
//
// attention_mass [slots] f32, counts [attended_counts(slots)] i32. Four slots a thread and step, at
// most most_attended_counts blocks. Bytes: 4 a slot in.
#pragma once

#include "indexpool/kernels/attention/feedback.cuh"
#include "indexpool/kernels/attention/rows.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct CountAttendedParams {
  const float* attention_mass;
  std::int64_t slots;
  std::int32_t* counts;
};

// Of `slots_per_thread` slots from `first` on.
IP_DEVICE std::uint32_t attended_from(const CountAttendedParams& p, std::int64_t first) {
  std::uint32_t count = 0;
  if (first + slots_per_thread <= p.slots) {
    const Four four = ip::load_global(reinterpret_cast<const Four*>(p.attention_mass + first));
    for (int i = 0; i < slots_per_thread; ++i) count += four.x[i] > 0 ? 1 : 0;
    return count;
  }
  for (std::int64_t slot = first; slot < p.slots; ++slot)
    count += ip::load_global(p.attention_mass + slot) > 0 ? 1 : 0;
  return count;
}

IP_KERNEL(feedback_threads, feedback_blocks_per_sm)
void count_attended_kernel(CountAttendedParams p) {
  std::uint32_t count = 0;
  const std::int64_t step = ip::grid_blocks() * slots_per_count;
  for (std::int64_t first = ip::block_index() * slots_per_count +
                            std::int64_t{ip::thread_index()} * slots_per_thread;
       first < p.slots; first += step)
    count += attended_from(p, first);
  const std::uint32_t sum = sum_over_block(count);
  if (ip::thread_index() == 0)
    ip::store_global(p.counts + ip::block_index(), static_cast<std::int32_t>(sum));
}

inline std::optional<std::string> count_attended_unsupported(const OpArgs& any) {
  const auto* args = attention_args<CountAttendedArgs>(any);
  if (args == nullptr) return "it counts what is attended to";
  return bad_count_attended(*args);
}

inline void count_attended_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<CountAttendedArgs>(any);
  const CountAttendedParams params = {args.attention_mass, args.slots, args.counts};
  ip_launch(context, attended_counts(args.slots), feedback_threads, feedback_shared_bytes,
            count_attended_kernel, params);
}

inline Work count_attended_work(const OpArgs& any) {
  return declared_count_attended(the_attention_args<CountAttendedArgs>(any));
}

extern const Kernel count_attended;
const Kernel count_attended = {"count_attended", INDEXPOOL_TARGET_NAME, count_attended_unsupported,
                               count_attended_launch, count_attended_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
