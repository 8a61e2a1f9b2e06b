#include "indexpool/sim/simt/executor.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::sim::simt {

constinit thread_local Position position;

namespace {

// Unwinds the threads that are still suspended after another one failed.
struct Cancelled {};

std::string place(const Where& where) {
  return fmt::format("{}:{}", where.file_name(), where.line);
}

}  // namespace

Executor::Executor() : threads_(std::make_unique<Thread[]>(max_threads)) {}

Executor::~Executor() {
  stopping_ = true;
  for (int i = 0; i < threads_made_; ++i) switch_fiber(main_, *threads_[i].fiber);
}

void Executor::fail(const char* kind, const std::string& text, const Where& where) {
  throw ExecutorError(kind,
                      fmt::format("{}: {}: {} (block {}, thread {})", place(where), kind, text,
                                  position.block, position.thread),
                      where);
}

void Executor::begin_launch(Session& new_session, int threads, std::int64_t shared_bytes,
                            const std::function<void()>& new_kernel) {
  session = &new_session;
  kernel = &new_kernel;
  memory = &new_session.memory.impl();
  counting = new_session.options.count;
  thread_count = threads;
  warp_count = threads / 32;
  shared.resize(shared_bytes);
  counters.start(warp_count);
  main_ = this_thread_as_fiber();
  for (; threads_made_ < threads; ++threads_made_) {
    Thread& thread = threads_[threads_made_];
    thread.executor = this;
    thread.index = threads_made_;
    thread.fiber = &fibers_.add(&run_fiber, &thread);
  }
}

void Executor::set_ready(Warp& warp, std::uint32_t lanes) {
  warp.ready |= lanes;
  ready_warps_ |= 1u << (&warp - warps.data());
}

void Executor::set_waiting(Warp& warp, std::uint32_t lanes) {
  warp.ready &= ~lanes;
  if (warp.ready == 0) ready_warps_ &= ~(1u << (&warp - warps.data()));
}

void Executor::run_block(std::int64_t block) {
  const QuietScope quiet;
  position = {0, thread_count, block, position.grid_blocks, shared.begin()};
  shared.poison_all();
  ready_warps_ = 0;
  for (int i = 0; i < warp_count; ++i) {
    Warp& warp = warps[i];
    warp.threads = &threads_[32 * i];
    warp.in_operation = warp.at_barrier = warp.done = 0;
    warp.open.clear();
    set_ready(warp, full_mask);
  }
  for (int i = 0; i < thread_count; ++i) {
    Thread& thread = threads_[i];
    thread.started = false;
    thread.pending.copies.clear();
    thread.pending.group_ends.clear();
  }
  waiting_at_barrier = done = 0;
  turns_ = 0;
  // The order depends on the block alone, not on which blocks ran before.
  random_ = (session->options.seed + 1) * 0x9E3779B97F4A7C15u ^
            (static_cast<std::uint64_t>(block) + 1) * 0xD1B54A32D192ED03u;
  if (random_ == 0) random_ = 1;
  const bool reverse = session->options.order == LaneOrder::reverse;
  current_warp_ = reverse ? warp_count - 1 : 0;
  cursor_ = reverse ? 31 : 0;
  publish(start_tag_);
  const int first = next_turn();
  position.thread = first;
  switch_fiber(main_, *threads_[first].fiber);
  if (failure_) cancel_all();
  acquire(end_tag_);
  for (int i = 0; i < warp_count && counting; ++i) counters.flush(i);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!shared.guards_intact()) {
    fail("out_of_bounds",
         fmt::format("the block wrote outside its {} bytes of shared memory through a raw pointer",
                     shared.bytes()),
         Where{});
  }
}

void Executor::cancel_all() {
  cancelling_ = true;
  for (int i = 0; i < thread_count; ++i) {
    Thread& thread = threads_[i];
    const bool finished = warps[i >> 5].done >> (i & 31) & 1u;
    if (!thread.started || finished) continue;
    position.thread = i;
    switch_fiber(main_, *thread.fiber);
  }
  cancelling_ = false;
}

// The life of a fiber: one thread of each block, until the executor goes. Not instrumented, since
// its frame outlives blocks and what it touches belongs to the executor.
[[gnu::no_sanitize("thread")]] void Executor::run_fiber(void* argument) {
  fiber_started();
  Thread& self = *static_cast<Thread*>(argument);
  Executor& executor = *self.executor;
  while (!executor.stopping_) {
    const int next = executor.run_kernel(self);
    if (next >= 0) {
      executor.switch_to(self, next);
    } else {
      switch_fiber(*self.fiber, executor.main_);
    }
  }
  self.fiber->finished = true;
  switch_fiber(*self.fiber, executor.main_);
}

int Executor::run_kernel(Thread& self) {
  acquire(start_tag_);
  try {
    self.started = true;
    self.accesses = 0;
    (*kernel)();
    const QuietScope quiet;
    leave(self);
  } catch (const Cancelled&) {
  } catch (...) {
    const QuietScope quiet;
    failure_ = std::current_exception();
  }
  const QuietScope quiet;
  warps[self.index >> 5].done |= 1u << (self.index & 31);
  publish(end_tag_);
  return failure_ || done == thread_count ? -1 : next_turn();
}

void Executor::leave(Thread& self) {
  Warp& own = warps[self.index >> 5];
  const std::uint32_t lane = 1u << (self.index & 31);
  for (const OpenOperation& open : own.open) {
    if (open.mask & lane) {
      fail(
          "bad_mask",
          fmt::format("lanes {:#010x} wait in {} with mask {:#010x}, which names lane {}, but that "
                      "lane has left the kernel",
                      open.arrived, open.operation->name, open.mask, self.index & 31),
          open.where);
    }
  }
  own.done |= lane;
  set_waiting(own, lane);
  ++done;
  if (done < thread_count && ready_warps_ == 0) report_stuck();
}

void Executor::release_barrier() {
  if (counting) {
    ++counters.traffic.block_barriers;
    for (int i = 0; i < warp_count; ++i) counters.flush(i);
  }
  for (int i = 0; i < warp_count; ++i) {
    set_ready(warps[i], warps[i].at_barrier);
    warps[i].at_barrier = 0;
  }
  waiting_at_barrier = 0;
  ++barriers;
  const bool reverse = session->options.order == LaneOrder::reverse;
  current_warp_ = reverse ? warp_count - 1 : 0;
  cursor_ = reverse ? 31 : 0;
}

void Executor::wait_turn(Thread& self) {
  if (++turns_ > session->options.max_turns) {
    fail("hung", fmt::format("the block is not done after {} turns", session->options.max_turns),
         self.where);
  }
  if (ready_warps_ == 0) report_stuck();
  const int next = next_turn();
  if (next != self.index) switch_to(self, next);
  if (cancelling_) throw Cancelled{};
  self.accesses = 0;
}

[[gnu::no_sanitize("thread")]] void Executor::switch_to(Thread& self, int next) {
  position.thread = next;
  switch_fiber(*self.fiber, *threads_[next].fiber);
}

int Executor::next_turn() {
  const LaneOrder order = session->options.order;
  if (order == LaneOrder::random) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    current_warp_ = static_cast<int>(random_ >> 32 & 31);
    cursor_ = static_cast<int>(random_ >> 40 & 31);
  }
  const bool reverse = order == LaneOrder::reverse;
  // Rotated so that the preferred one comes first (forward) or last (reverse).
  if (!(ready_warps_ >> current_warp_ & 1u)) {
    if (reverse) {
      const int below = std::countl_zero(std::rotl(ready_warps_, 31 - current_warp_));
      current_warp_ = (current_warp_ - below) & 31;
      cursor_ = 31;
    } else {
      const int above = std::countr_zero(std::rotr(ready_warps_, current_warp_));
      current_warp_ = (current_warp_ + above) & 31;
      if (order == LaneOrder::forward) cursor_ = 0;
    }
  }
  const std::uint32_t ready = warps[current_warp_].ready;
  int lane;
  if (reverse) {
    lane = (cursor_ - std::countl_zero(std::rotl(ready, 31 - cursor_))) & 31;
    cursor_ = (lane - 1) & 31;
  } else {
    lane = (cursor_ + std::countr_zero(std::rotr(ready, cursor_))) & 31;
    cursor_ = (lane + 1) & 31;
  }
  return current_warp_ * 32 + lane;
}

void Executor::report_stuck() {
  if (waiting_at_barrier > 0 && waiting_at_barrier + done == thread_count) {
    fail("divergent_barrier",
         fmt::format("{} of {} threads wait at this barrier, the others have left the kernel",
                     waiting_at_barrier, thread_count),
         barrier_where);
  }
  std::string text = fmt::format("no thread can go on; {} have left the kernel", done);
  if (waiting_at_barrier > 0) {
    text += fmt::format(", {} wait at the barrier {}", waiting_at_barrier, place(barrier_where));
  }
  Where where = barrier_where;
  for (int i = 0; i < warp_count; ++i) {
    for (const OpenOperation& open : warps[i].open) {
      text += fmt::format(", lanes {:#010x} of warp {} wait in {} at {} for lanes {:#010x}",
                          open.arrived, i, open.operation->name, place(open.where),
                          open.mask & ~open.arrived);
      where = open.where;
    }
  }
  fail("deadlock", text, where);
}

}  // namespace indexpool::sim::simt
