// cp.async as an adversary would run it: nothing arrives before the issuing thread waits for it.
#include <algorithm>
#include <cstring>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/executor.hpp"

namespace indexpool::sim::simt {

void async_copy_16(void* shared_to, const void* global_from, bool active, Where where) {
  if (active) enter_global(global_from, 16, false, where);
  enter_shared(shared_to, 16, true, where);
  // Written here and at the wait, so that a race detector sees both ends of the copy.
  SharedMemory::fill_with_poison(static_cast<std::byte*>(shared_to), 16);
  const QuietScope quiet;
  running_executor().thread().pending.copies.push_back(
      {static_cast<std::byte*>(shared_to),
       active ? static_cast<const std::byte*>(global_from) : nullptr});
}

void async_commit(Where) {
  const QuietScope quiet;
  CopyQueue& queue = running_executor().thread().pending;
  queue.group_ends.push_back(queue.copies.size());
}

namespace {

// How many of the oldest copies must have arrived when at most `pending` groups may be on their
// way.
std::size_t due(const CopyQueue& queue, int pending) {
  const std::size_t groups = queue.group_ends.size();
  const auto allowed = static_cast<std::size_t>(pending);
  return groups > allowed ? queue.group_ends[groups - allowed - 1] : 0;
}

void forget(CopyQueue& queue, std::size_t copies, int pending) {
  queue.copies.erase(queue.copies.begin(),
                     queue.copies.begin() + static_cast<std::ptrdiff_t>(copies));
  const std::size_t kept = std::min(queue.group_ends.size(), static_cast<std::size_t>(pending));
  queue.group_ends.erase(queue.group_ends.begin(),
                         queue.group_ends.end() - static_cast<std::ptrdiff_t>(kept));
  for (std::size_t& end : queue.group_ends) end -= copies;
}

}  // namespace

void async_wait_pending(int pending, Where) {
  CopyQueue* queue = nullptr;
  std::size_t copies = 0;
  {
    const QuietScope quiet;
    queue = &running_executor().thread().pending;
    copies = due(*queue, pending);
  }
  for (std::size_t i = 0; i < copies; ++i) {
    PendingCopy copy{};
    {
      const QuietScope quiet;
      copy = queue->copies[i];
    }
    if (copy.from) {
      std::memcpy(copy.to, copy.from, 16);
    } else {
      std::memset(copy.to, 0, 16);
    }
  }
  const QuietScope quiet;
  forget(*queue, copies, pending);
}

}  // namespace indexpool::sim::simt
