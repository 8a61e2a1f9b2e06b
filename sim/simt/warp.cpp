// Barriers and operations of a warp's lanes together.
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/executor.hpp"

namespace indexpool::sim::simt {
namespace {

// One file has a name per translation unit.
bool same_place(const Where& a, const Where& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string line_of(const Where& where) {
  return fmt::format("{}:{}", where.file_name(), where.line);
}

// A mask must name the caller and no lane that left; an operation already waiting for the caller
// must be this one if the caller waits for its lanes, or neither could ever go on.
void check_mask(Executor& executor, const Warp& warp, int lane, const WarpOperation& operation,
                std::uint32_t mask, const Where& where) {
  if (!(mask >> lane & 1u)) {
    executor.fail("bad_mask",
                  fmt::format("lane {} calls {} with mask {:#010x}, which does not name it", lane,
                              operation.name, mask),
                  where);
  }
  if (mask & warp.done) {
    executor.fail(
        "bad_mask",
        fmt::format("{} with mask {:#010x} names lanes {:#010x}, which have left the kernel",
                    operation.name, mask, mask & warp.done),
        where);
  }
  for (const OpenOperation& open : warp.open) {
    if (!(open.mask >> lane & 1u) || !(open.arrived & mask)) continue;
    if (open.mask != mask) {
      executor.fail("bad_mask",
                    fmt::format("lanes disagree on the mask: lane {} calls {} with {:#010x}, lanes "
                                "{:#010x} wait in {} at {} with {:#010x}",
                                lane, operation.name, mask, open.arrived, open.operation->name,
                                line_of(open.where), open.mask),
                    where);
    }
    if (open.operation != &operation || !same_place(open.where, where)) {
      executor.fail(
          "divergent_warp",
          fmt::format("lane {} calls {}, but lanes {:#010x} of the same mask wait in {} at {}",
                      lane, operation.name, open.arrived, open.operation->name,
                      line_of(open.where)),
          where);
    }
  }
}

void finish(Executor& executor, Warp& warp, const WarpOperation& operation, std::uint32_t mask,
            Thread& last) {
  operation.complete(executor, warp, mask);
  if (operation.orders_memory) {
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      acquire(warp.threads[std::countr_zero(rest)].arrival_tag);
    }
    char& tag = last.completed_tags[last.completed++ % 2];
    publish(tag);
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      warp.threads[std::countr_zero(rest)].departure_tag = &tag;
    }
  }
  if (executor.counting && (mask | warp.done) == full_mask) {
    executor.counters.flush(static_cast<int>(&warp - executor.warps.data()));
  }
  warp.in_operation &= ~mask;
  executor.set_ready(warp, mask);
}

struct ShufflePayload {
  std::uint64_t value, result;
  int source;
};

void complete_shuffle(Executor& executor, Warp& warp, std::uint32_t mask) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto* payload = static_cast<ShufflePayload*>(warp.threads[lane].payload);
    if (!(mask >> payload->source & 1u)) {
      executor.fail("bad_mask",
                    fmt::format("lane {} shuffles from lane {}, which mask {:#010x} does not name",
                                lane, payload->source, mask),
                    warp.threads[lane].where);
    }
    payload->result = static_cast<ShufflePayload*>(warp.threads[payload->source].payload)->value;
  }
}

struct BallotPayload {
  bool predicate;
  std::uint32_t result;
};

void complete_ballot(Executor& executor, Warp& warp, std::uint32_t mask) {
  std::uint32_t votes = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto* payload = static_cast<BallotPayload*>(warp.threads[lane].payload);
    votes |= static_cast<std::uint32_t>(payload->predicate) << lane;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    static_cast<BallotPayload*>(warp.threads[std::countr_zero(rest)].payload)->result = votes;
  }
  executor.counters.traffic.shuffles += 1;
}

constexpr WarpOperation sync_operation{"sync_warp", [](Executor&, Warp&, std::uint32_t) {}, true};
constexpr WarpOperation shuffle_operation{"shuffle", complete_shuffle, false};
constexpr WarpOperation ballot_operation{"ballot", complete_ballot, false};

}  // namespace

void arrive(Executor& executor, const WarpOperation& operation, std::uint32_t mask, void* payload,
            const Where& where) {
  Thread& self = executor.thread();
  Warp& warp = executor.warp();
  const int lane = self.index & 31;
  check_mask(executor, warp, lane, operation, mask, where);
  self.payload = payload;
  self.where = where;
  if (operation.orders_memory) publish(self.arrival_tag);
  OpenOperation* open = nullptr;
  for (OpenOperation& candidate : warp.open) {
    if (candidate.mask == mask) open = &candidate;
  }
  if (!open) open = &warp.open.emplace_back(OpenOperation{mask, 0, &operation, where});
  open->arrived |= 1u << lane;
  warp.in_operation |= 1u << lane;
  executor.set_waiting(warp, 1u << lane);
  if (open->arrived == mask) {
    *open = warp.open.back();
    warp.open.pop_back();
    finish(executor, warp, operation, mask, self);
  }
  executor.wait_turn(self);
  if (operation.orders_memory) acquire(*self.departure_tag);
}

void sync_block(Where where) {
  const QuietScope quiet;
  Executor& executor = running_executor();
  Thread& self = executor.thread();
  Warp& warp = executor.warp();
  if (executor.waiting_at_barrier == 0) {
    executor.barrier_where = where;
  } else if (!same_place(executor.barrier_where, where)) {
    executor.fail(
        "divergent_barrier",
        fmt::format("{} of {} threads wait at another barrier, {}", executor.waiting_at_barrier,
                    executor.thread_count, line_of(executor.barrier_where)),
        where);
  }
  self.where = where;
  char& tag = executor.barrier_tags[executor.barriers % 2];
  publish(tag);
  warp.at_barrier |= 1u << (self.index & 31);
  executor.set_waiting(warp, 1u << (self.index & 31));
  if (++executor.waiting_at_barrier == executor.thread_count) executor.release_barrier();
  executor.wait_turn(self);
  acquire(tag);
}

void sync_warp(std::uint32_t mask, Where where) {
  const QuietScope quiet;
  arrive(running_executor(), sync_operation, mask, nullptr, where);
}

std::uint32_t ballot(std::uint32_t mask, bool predicate, Where where) {
  const QuietScope quiet;
  BallotPayload payload{predicate, 0};
  arrive(running_executor(), ballot_operation, mask, &payload, where);
  return payload.result;
}

std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, int bytes, int source,
                           Where where) {
  const QuietScope quiet;
  Executor& executor = running_executor();
  ShufflePayload payload{value, 0, source};
  arrive(executor, shuffle_operation, mask, &payload, where);
  // The lowest lane of the mask counts for all: one instruction per 4 bytes.
  if (std::countr_zero(mask) == lane_index()) {
    executor.counters.traffic.shuffles += bytes > 4 ? 2 : 1;
  }
  return payload.result;
}

}  // namespace indexpool::sim::simt
