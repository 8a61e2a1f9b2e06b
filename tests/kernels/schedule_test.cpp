// Any way of splitting a sequence into prefill chunks and decode steps, with speculative drafts of
// which any number is rejected, leaves the same pooled bytes.
#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

struct Scenario {
  Shape shape;
  std::int64_t length, drafts, states_per_page;
  Rows rows;
  std::vector<Head> ape;
  std::vector<std::int32_t> table;

  Workbench::Sizes sizes() const {
    Workbench::Sizes sizes;
    sizes.pages = std::ssize(table);
    sizes.states_per_page = states_per_page;
    sizes.ring = ring_size(shape.config.index_kpool, drafts);
    sizes.checksums = false;
    return sizes;
  }
};

Scenario any_scenario() {
  Scenario scenario;
  const std::string mode = *rc::gen::elementOf(mode_names());
  const auto kpool =
      *rc::gen::weightedElement<std::int64_t>({{4, 4}, {1, 1}, {1, 2}, {1, 3}, {1, 5}, {1, 8}});
  scenario.shape = make_shape(mode, *rc::gen::element(32, 64, 128), kpool);
  scenario.length = *rc::gen::inRange<std::int64_t>(1, 40);
  scenario.drafts = *rc::gen::inRange<std::int64_t>(0, 7);
  scenario.states_per_page = *rc::gen::element<std::int64_t>(1, 2, 5, 64);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  scenario.rows = random_rows(scenario.shape, scenario.length, seed);
  scenario.ape = random_ape(scenario.shape, seed + 1);
  // Rejected drafts may close a pool beyond the sequence: the engine has pages for it.
  const std::int64_t pools = (scenario.length + scenario.drafts) / kpool + 1;
  scenario.table = random_block_table(pools / scenario.states_per_page + 1, 0, seed);
  return scenario;
}

// Rows of a step at `start`: `kept` tokens of the sequence, then `rejected` that are not of it.
Rows step_rows(const Scenario& scenario, std::int64_t start, std::int64_t kept,
               std::int64_t rejected, std::uint64_t seed) {
  Rows rows = random_rows(scenario.shape, rejected, seed);
  const auto take = [&](const std::vector<Head>& all, std::vector<Head>& to) {
    to.insert(to.begin(), all.begin() + start, all.begin() + start + kept);
  };
  take(scenario.rows.keys, rows.keys);
  take(scenario.rows.gate_scores, rows.gate_scores);
  return rows;
}

// The stored bytes of the sequence's pools.
std::vector<HostPool> pools_of(const Scenario& scenario, Workbench& bench) {
  std::vector<HostPool> pools;
  for (std::int64_t p = 0; p < scenario.length / scenario.shape.config.index_kpool; ++p)
    pools.push_back(bench.pool_at(pool_slot(scenario.table, scenario.states_per_page, p)));
  return pools;
}

bool same(const std::vector<HostPool>& a, const std::vector<HostPool>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.stored == y.stored && x.scale == y.scale;
  });
}

// One random step from `position` on; returns the next position.
std::int64_t random_step(const Scenario& scenario, Workbench& bench, std::int64_t position) {
  const std::int64_t left = scenario.length - position;
  const bool decodes = *rc::gen::arbitrary<bool>();
  if (!decodes) {
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, left + 1);
    const StepRequest request = {position, tokens, 0, 0, scenario.table};
    bench.prefill(step_rows(scenario, position, tokens, 0, 0), {&request, 1});
    return position + tokens;
  }
  const auto drafts = *rc::gen::inRange<std::int64_t>(0, scenario.drafts + 1);
  const auto kept = *rc::gen::inRange<std::int64_t>(1, std::min(left, 1 + drafts) + 1);
  const StepRequest request = {position, 1 + drafts, 0, 0, scenario.table};
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  bench.append(step_rows(scenario, position, kept, 1 + drafts - kept, seed), {&request, 1});
  return position + kept;
}

RC_GTEST_PROP(Schedule, AnySplitLeavesTheBytesOfOnePrefill, ()) {
  const Scenario scenario = any_scenario();
  Workbench one_shot(scenario.shape, scenario.ape, scenario.sizes());
  const StepRequest whole = {0, scenario.length, 0, 0, scenario.table};
  one_shot.prefill(scenario.rows, {&whole, 1});

  Workbench bench(scenario.shape, scenario.ape, scenario.sizes());
  std::int64_t position = 0;
  while (position < scenario.length) position = random_step(scenario, bench, position);
  RC_ASSERT(same(pools_of(scenario, one_shot), pools_of(scenario, bench)));
}

// The ring rule is tight: one entry less, and a rejected draft that closes a pool overwrites keys
// that its redo needs. Positions 0 to 3 with one draft: token 3 closes pool 0, the draft at 4 would
// land on entry 0 of a ring of 4. It is rejected together with 3's successor, so pool 0 is intact;
// but a step of tokens 2, 3, 4 of which only 2 stays has overwritten position 0.
TEST(Schedule, RingWithoutRoomForDraftsLosesAToken) {
  const Shape shape = make_shape("bf16", 64, 4);
  const Rows rows = random_rows(shape, 4, 1), wrong = random_rows(shape, 2, 2);
  const auto table = random_block_table(2, 0, 1);
  const auto run = [&](std::int64_t ring) {
    Workbench::Sizes sizes;
    sizes.pages = 2;
    sizes.ring = ring;
    Workbench bench(shape, random_ape(shape, 3), sizes);
    const auto append = [&](std::int64_t start, const Rows& step) {
      const StepRequest request = {start, std::ssize(step.keys), 0, 0, table};
      bench.append(step, {&request, 1});
    };
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return Rows{{rows.keys.begin() + first, rows.keys.begin() + first + count},
                  {rows.gate_scores.begin() + first, rows.gate_scores.begin() + first + count}};
    };
    append(0, part(0, 2));
    Rows speculative = part(2, 1);  // token 2 stays, 3 and 4 are rejected
    for (std::size_t i = 0; i < 2; ++i) {
      speculative.keys.push_back(wrong.keys[i]);
      speculative.gate_scores.push_back(wrong.gate_scores[i]);
    }
    append(2, speculative);
    append(3, part(3, 1));
    return bench.pool_at(pool_slot(table, 64, 0)).stored;
  };
  const auto expected =
      host_pool(shape.mode, rows.keys, rows.gate_scores, random_ape(shape, 3)).stored;
  EXPECT_EQ(run(ring_size(4, 2)), expected);
  EXPECT_NE(run(4), expected);
}

}  // namespace
}  // namespace indexpool::kernels
