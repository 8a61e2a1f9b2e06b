// Traffic of the kernels that take weights' gradients back to the scalars of their terms, warp by
// warp: slots of [G, m] in a row.
#include <algorithm>
#include <bit>

#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/backward/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

// 10 fused multiply-adds, a subtraction, two products; a logarithm has as many.
constexpr double exponential_flop = 23, logarithm_flop = 23;

struct TermWarp {
  std::int64_t first, end;  // groups
  std::int64_t index;
  std::int32_t index_kpool;

  GlobalAccess slots(const void* base) const {
    return stretch(base, first * index_kpool, slot_count());
  }
  std::int64_t slot_count() const { return (end - first) * index_kpool; }
  GlobalAccess sums(const float* rows, std::int64_t terms) const {
    return stretch(rows, index * terms, terms);
  }
  static GlobalAccess stretch(const void* base, std::int64_t word, std::int64_t words) {
    return {words * 4, sectors_of(address_of(base) + word * 4, words * 4)};
  }
};

// f(warp, its traffic) of each warp.
template <class F>
Work term_work(std::int64_t group_count, std::int32_t index_kpool, std::int64_t terms, F&& f) {
  const std::int64_t lanes = role_lanes(index_kpool), per_warp = groups_per_term_row(index_kpool);
  Work work;
  for (std::int64_t first = 0; first < group_count; first += per_warp) {
    const std::int64_t end = std::min(first + per_warp, group_count);
    f(TermWarp{first, end, first / per_warp, index_kpool}, work.traffic);
    work.traffic.shuffles += 5 * terms;
  }
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(group_count, policy_threads / lanes);
  work.blocks_per_sm = role_blocks_per_sm;
  work.in_flight_per_block = Bytes(std::int64_t{4} * policy_threads / lanes * index_kpool * 4);
  work.unique_write = Bytes(term_row_count(group_count, index_kpool) * terms * 4);
  return work;
}

}  // namespace

Work declared_additive_terms_backward(const AdditiveTermsBackwardArgs& args) {
  Work work = term_work(
      args.group_count, args.index_kpool, additive_terms,
      [&](const TermWarp& warp, Traffic& traffic) {
        for (const float* words : {args.distances, args.ages, args.cosines, args.grad_weights})
          add_loads(traffic, warp.slots(words));
        add_stores(traffic, warp.sums(args.term_rows, additive_terms));
      });
  work.unique_read = work.traffic.global_load;
  work.f32_flop =
      Flop(static_cast<double>(args.group_count * args.index_kpool) * (2 * exponential_flop + 22));
  return with_issue(work, additive_terms_backward_issue(args));
}

Work declared_tfidf_terms_backward(const TfidfTermsBackwardArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  const std::int64_t m = grouped.index_kpool, slots = grouped.group_count * m;
  const GroupedAccess access{grouped};
  Work work = term_work(grouped.group_count, grouped.index_kpool, tfidf_terms,
                        [&](const TermWarp& warp, Traffic& traffic) {
                          const WarpGroups groups(access, warp.first, warp.end);
                          add_loads(traffic, groups.elements(grouped.groups, sizeof(VectorGroup)));
                          for (const void* words : {static_cast<const void*>(args.accesses),
                                                    static_cast<const void*>(args.groups_accessed),
                                                    static_cast<const void*>(args.cosines),
                                                    static_cast<const void*>(args.grad_weights)})
                            add_loads(traffic, warp.slots(words));
                          add_loads(traffic, TermWarp::stretch(args.position_terms, 0, m));
                          add_stores(traffic, warp.slots(args.position_rows));
                          add_stores(traffic, warp.sums(args.term_rows, tfidf_terms));
                          traffic.shuffles += std::countr_zero(
                              static_cast<std::uint64_t>(role_lanes(grouped.index_kpool)));
                        });
  work.unique_read = Bytes(grouped.group_count * std::int64_t{sizeof(VectorGroup)} + 16 * slots +
                           (slots > 0 ? 4 * m : 0));
  work.unique_write.value += 4 * slots;
  work.f32_flop = Flop(static_cast<double>(slots) * (logarithm_flop + 12));
  return with_issue(work, tfidf_terms_backward_issue(args));
}

}  // namespace indexpool::kernels
