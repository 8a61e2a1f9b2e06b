// Streams through strategies: what must stay the same, what is counted, and planted errors.
#include "indexpool/verify/strategies/simulate.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/strategies/recall.hpp"

#include "streams.hpp"

namespace indexpool::verify::strategies {
namespace {

std::uint64_t draw_seed() { return *rc::gen::inRange<std::uint64_t>(0, 1000); }

StreamRun run(const StreamOptions& options, const std::string& policy, bool by_step,
              const Settings& settings) {
  PoolingLatency latency = a100();
  const Form form = make_form(policy, by_step, options);
  return simulate(form, settings, options, make_streams(options)[0], latency, small_run());
}

StreamOptions revised(std::uint64_t seed) {
  StreamOptions options = small_options(seed);
  options.small_chance = 0.1;
  options.large_chance = 0.02;
  return options;
}

RC_GTEST_PROP(Simulation, RatioStoresCeilOfTokensOverRatioPlaces, ()) {
  const StreamOptions options =
      small_options(draw_seed(), 4 * *rc::gen::inRange<std::int64_t>(20, 40));
  Settings settings;
  settings.ratio.vectors = *rc::gen::inRange(1, 17);
  const StreamRun result = run(options, "gated", false, settings);
  const std::int64_t places = slots_of(settings.ratio, options.tokens);
  const std::int64_t tail = options.tokens % settings.ratio.vectors;
  RC_ASSERT(std::ssize(result.pools[0]) + (tail > 0 ? 1 : 0) == places);
  const std::int64_t pools = options.tokens / settings.ratio.vectors;
  RC_ASSERT(result.counts.pools == pools);
  RC_ASSERT(result.counts.bytes_stored == (pools + tail) * 32 * 2);
  RC_ASSERT(result.counts.bytes_written == pools * 32 * 2);
}

RC_GTEST_PROP(Simulation, AThresholdOfZeroChangesNothingButTheWork, ()) {
  const StreamOptions options = revised(draw_seed());
  const std::string policy =
      *rc::gen::elementOf(std::vector<std::string>{"plain", "gated", "additive", "tfidf"});
  Settings settings;
  const StreamRun every = run(options, policy, false, settings);
  settings.incremental.threshold = 0;
  const StreamRun changed = run(options, policy, false, settings);
  RC_ASSERT(same_run(every, changed));
  RC_ASSERT(changed.counts.pools < every.counts.pools);
  RC_ASSERT(changed.staleness.utilisation == 0.0);
  RC_ASSERT(changed.monitor.hit_steps == changed.monitor.steps);
}

RC_GTEST_PROP(Simulation, TheStalenessBoundHoldsOnEveryStep, ()) {
  const StreamOptions options = revised(draw_seed());
  const std::string policy =
      *rc::gen::elementOf(std::vector<std::string>{"plain", "gated", "additive", "tfidf"});
  Settings settings;
  settings.incremental.threshold = *rc::gen::inRange(1, 300) / 100.0;
  const StreamRun result = run(options, policy, false, settings);
  RC_ASSERT(result.staleness.compared > 0);
  RC_ASSERT(result.staleness.violations == 0);
  RC_ASSERT(result.staleness.utilisation <= 1.0);
}

RC_GTEST_PROP(Simulation, AHigherThresholdPoolsNoMore, ()) {
  const StreamOptions options = revised(draw_seed());
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const double threshold : {0.0, 0.3, 1e9}) {
    Settings settings;
    settings.incremental.threshold = threshold;
    const std::int64_t pools = run(options, "plain", false, settings).counts.pools;
    RC_ASSERT(pools <= before);
    before = pools;
  }
  RC_ASSERT(before == options.tokens / 4);  // each once
}

RC_GTEST_PROP(Simulation, EveryOneStepOfOneLayerIsEveryLayer, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  const StreamRun every_layer = run(options, "additive", true, settings);
  settings.frequency.steps = 1;
  const StreamRun every_step = run(options, "additive", true, settings);
  RC_ASSERT(same_run(every_layer, every_step));
  RC_ASSERT(every_layer.counts.weight_sets == every_step.counts.weight_sets);
  // Weights that are used again are kept: 4 bytes a pooled token.
  RC_ASSERT(every_step.counts.bytes_stored - every_layer.counts.bytes_stored == options.tokens * 4);
}

RC_GTEST_PROP(Simulation, WeightsOfAStepServeAllItsLayers, ()) {
  StreamOptions options = small_options(draw_seed());
  options.layers = *rc::gen::inRange(2, 4);
  const std::int64_t n = *rc::gen::inRange(1, 5);
  Settings settings;
  settings.frequency.steps = n;
  const StreamRun result = run(options, "additive", true, settings);
  RC_ASSERT(result.counts.pools == options.layers * result.counts.weight_sets);
  std::int64_t sets = options.tokens / 4;  // each once, when it is new
  for (std::int64_t step = 0; step < options.steps; step += n) {
    const std::int64_t tokens = options.tokens - options.steps + step;
    sets += tokens / 4;  // and those of before, when they are due
  }
  RC_ASSERT(result.counts.weight_sets == sets);
  for (const auto& layer : result.pools)
    for (std::size_t i = 0; i < layer.size(); ++i)
      RC_ASSERT(layer[i].weights == result.pools[0][i].weights);
}

RC_GTEST_PROP(Simulation, OffBelowALengthThatIsReachedIsAsWithout, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  const StreamRun without = run(options, "gated", false, settings);
  settings.shorts.below = *rc::gen::inRange<std::int64_t>(0, options.tokens - options.steps + 1);
  const StreamRun above = run(options, "gated", false, settings);
  RC_ASSERT(same_run(without, above));
  RC_ASSERT(same_counts(without, above));
}

RC_GTEST_PROP(Simulation, TheStepThatReachesTheLengthPoolsEverythingAtOnce, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  const StreamRun without = run(options, "gated", false, settings);
  settings.shorts.below =
      *rc::gen::inRange<std::int64_t>(options.tokens - options.steps + 1, options.tokens + 1);
  const StreamRun across = run(options, "gated", false, settings);
  for (std::size_t i = 0; i < without.pools[0].size(); ++i)
    RC_ASSERT(without.pools[0][i].codes == across.pools[0][i].codes);
  RC_ASSERT(across.counts.pools == without.counts.pools);
  // Every key that was there before is written too.
  RC_ASSERT(across.counts.bytes_written ==
            without.counts.bytes_written + (settings.shorts.below - 1) * 64);
}

RC_GTEST_PROP(Simulation, NothingIsLostWhileNothingIsPooled, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  settings.shorts.below = 1000;
  const StreamRun off = run(options, "gated", false, settings);
  RC_ASSERT(off.counts.pools == 0);
  RC_ASSERT(off.counts.launches == 0);
  RC_ASSERT(off.counts.bytes_stored == options.tokens * 64);
  // Of 4 wanted, 16 are selected: bf16 does not move a token that far.
  for (const double recall : off.recall) RC_ASSERT(recall == 1.0);
}

RC_GTEST_PROP(Simulation, BytesAreThoseOfTheFormulaWhateverTheSettings, ()) {
  StreamOptions options = small_options(draw_seed(), 4 * *rc::gen::inRange<std::int64_t>(20, 40));
  options.layers = *rc::gen::inRange(1, 3);
  options.calm_share = *rc::gen::inRange(0, 3) / 2.0;
  const bool by_step = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) options.small_chance = 0.1;
  Settings settings;
  settings.ratio.vectors = *rc::gen::inRange(1, 17);
  settings.adaptive.on = *rc::gen::arbitrary<bool>();
  settings.frequency.steps = by_step ? *rc::gen::inRange(0, 4) : 0;
  settings.precision = {*rc::gen::element(PrecisionRule::all, PrecisionRule::recent),
                        *rc::gen::element(DType::f16, DType::bf16, DType::f32),
                        *rc::gen::element(DType::i8, DType::e4m3), *rc::gen::inRange(0, 200)};
  settings.shorts.below = *rc::gen::element<std::int64_t>(0, 90, 100'000);
  settings.edge = {*rc::gen::arbitrary<bool>(), published_edge_tokens, *rc::gen::inRange(0, 2)};
  const StreamRun result = run(options, by_step ? "tfidf" : "gated", by_step, settings);
  RC_ASSERT(result.counts.bytes_stored == result.counts.bytes_expected);
  RC_ASSERT(result.monitor.normalisation_violations == 0);
  RC_ASSERT(result.monitor.checksum_failures == 0);
  RC_ASSERT(std::ssize(result.recall) == options.steps * options.layers);
}

RC_GTEST_PROP(Simulation, NormsDecideFormatsOfTheSameBytes, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  settings.precision = {PrecisionRule::norm, DType::f16, DType::i8};
  settings.precision.norm_share = *rc::gen::inRange(0, 20) / 10.0;
  const StreamRun result = run(options, "gated", false, settings);
  RC_ASSERT(result.counts.bytes_stored == result.counts.bytes_expected);
}

RC_GTEST_PROP(Simulation, LatePoolsAreTheSamePoolsAStepLater, ()) {
  const StreamOptions options = small_options(draw_seed());
  Settings settings;
  const StreamRun at_once = run(options, "gated", false, settings);
  settings.edge.late_steps = 1;
  const StreamRun late = run(options, "gated", false, settings);
  RC_ASSERT(same_counts(at_once, late) == false || options.steps < 4);  // reads the tail longer
  for (std::size_t i = 0; i < at_once.pools[0].size(); ++i)
    RC_ASSERT(at_once.pools[0][i].codes == late.pools[0][i].codes);
  // Static weights: a pool a step late is current, and its tokens were in the tail meanwhile.
  RC_ASSERT(late.monitor.hit_steps == late.monitor.steps);
  Settings by_step;
  by_step.edge.late_steps = 1;
  RC_ASSERT(run(options, "tfidf", true, by_step).monitor.hit_steps == 0);
}

TEST(Simulation, TwoTokensAreKeptByHand) {
  // Pools of 2 of 6 tokens; the last stays in the tail.
  const std::vector<Segment> segments = {{0, 2}, {2, 2}};
  EXPECT_EQ(select_segments(std::vector<double>{1, 2}, segments, 2), (std::vector<std::size_t>{1}));
  EXPECT_EQ(select_segments(std::vector<double>{2, 2}, segments, 3), (std::vector<std::size_t>{0}));
  const std::vector<Segment> mixed = {{0, 8}, {8, 2}, {10, 2}};
  EXPECT_EQ(select_segments(std::vector<double>{3, 2, 1}, mixed, 4),
            (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(share_kept(std::vector<std::int64_t>{1, 2, 5}, std::vector<Segment>{{2, 2}}, 4),
            2.0 / 3);
  EXPECT_EQ(share_kept(std::vector<std::int64_t>{0}, std::vector<Segment>{}, 4), 0);
}

TEST(Simulation, TheSameSeedGivesTheSameRunAndAnotherDoesNot) {
  const StreamRun first = run(revised(3), "tfidf", false, {}),
                  second = run(revised(3), "tfidf", false, {});
  EXPECT_TRUE(same_run(first, second));
  EXPECT_TRUE(same_counts(first, second));
  EXPECT_FALSE(same_run(first, run(revised(4), "tfidf", false, {})));
}

TEST(Cache, EveryFlippedBitOfAPoolIsSeen) {
  for (const DType format : {DType::bf16, DType::f16, DType::e4m3, DType::i8}) {
    Pool pool;
    store(std::vector<double>{1, -2, 0.5, 3}, format, pool);
    EXPECT_TRUE(intact(pool));
    EXPECT_EQ(pool.bytes(), pool_bytes(format, 4));
    for (std::size_t bit = 0; bit < 8 * pool.codes.size(); ++bit) {
      pool.codes[bit / 8] ^= std::byte(1u << bit % 8);
      EXPECT_FALSE(intact(pool)) << bit;
      pool.codes[bit / 8] ^= std::byte(1u << bit % 8);
    }
    pool.scale *= 2;
    EXPECT_FALSE(intact(pool));
  }
}

RC_GTEST_PROP(Cache, EightBitsAreWithinHalfAStepOfTheScale, ()) {
  std::vector<double> value(8);
  for (double& x : value) x = *rc::gen::inRange(-1000, 1001) / 64.0;
  Pool pool;
  store(value, DType::i8, pool);
  const auto loaded = load(pool);
  for (std::size_t c = 0; c < value.size(); ++c)
    RC_ASSERT(std::abs(loaded[c] - value[c]) <= pool.scale * 0.501);
}

TEST(Form, SharesAreFallingByEqualStepsInThePlainForm) {
  const StreamOptions options = small_options();
  const Form form = make_form("plain", false, options);
  const auto streams = make_streams(options);
  const Groups groups{&streams[0], 0, -1, 96, 4, {{0, 4}}};
  const auto weights = weights_of(form, groups);
  const double expected[] = {0.4, 0.3, 0.2, 0.1};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(weights[i], expected[i]);
  const auto pool = pools_of(form, groups, weights);
  const auto keys = streams[0].group(0, 0, 4);
  for (std::size_t c = 0; c < 32; ++c)
    EXPECT_NEAR(pool[c],
                0.4 * keys[c] + 0.3 * keys[32 + c] + 0.2 * keys[64 + c] + 0.1 * keys[96 + c],
                1e-12);
  EXPECT_EQ(form.launches_of_weights(), 0);
}

TEST(Form, TheGateOpensForSalientTokens) {
  const StreamOptions options = small_options();
  const Form form = make_form("gated", false, options);
  const auto streams = make_streams(options);
  double salient = 0, other = 0;
  for (const Stream& stream : streams) {
    Groups groups{&stream, 0, -1, 96, 4, segments_of(RatioSettings{4}, 96)};
    const auto weights = weights_of(form, groups);
    for (std::size_t t = 0; t < weights.size(); ++t)
      (stream.salient[t / 4] == std::int64_t(t % 4) ? salient : other) +=
          weights[t] / (stream.salient[t / 4] == std::int64_t(t % 4) ? 48.0 : 144.0);
  }
  EXPECT_GT(salient, 0.75);
  EXPECT_LT(other, 0.25);
  EXPECT_THROW(make_form("kpool", false, options), ConfigError);
}

// Planted errors: what the monitor and the verdict are for.
TEST(Judge, EachPlantedErrorIsNamedByItsCheck) {
  const StreamRun good = run(revised(1), "gated", false, {});
  const auto verdict = [&](const StreamRun& of, bool incremental = false) {
    return judge(of.counts, of.monitor, of.staleness, incremental, {of.recall});
  };
  EXPECT_EQ(verdict(good).status, Status::passed);
  StreamRun bad = good;
  bad.counts.bytes_stored += 1;
  EXPECT_NE(verdict(bad).reason.find("bytes stored, the formula says"), std::string::npos);
  bad = good;
  bad.monitor.checksum_failures = 1;
  EXPECT_NE(verdict(bad).reason.find("not the bytes that were stored"), std::string::npos);
  bad = good;
  bad.recall[0] = std::nan("");
  EXPECT_NE(verdict(bad).reason.find("outside 0 to 1"), std::string::npos);
  bad = good;
  bad.staleness = {10, 1, 1.5, 1};
  EXPECT_NE(verdict(bad, true).reason.find("further from a fresh pool"), std::string::npos);
  // A bound that was never looked at proves nothing.
  EXPECT_EQ(verdict(good, true).status, Status::untrusted);
}

TEST(Judge, WeightsOfEightBitsWithoutADivisionDoNotSumToOne) {
  Settings settings;
  settings.edge.weights_in_8_bits = true;
  const StreamRun divided = run(small_options(), "gated", false, settings);
  EXPECT_EQ(divided.monitor.normalisation_violations, 0);
  const StreamRun plain = run(small_options(), "plain", false, settings);
  EXPECT_EQ(plain.monitor.normalisation_violations, plain.monitor.sums);
  const Verdict verdict = judge(plain.counts, plain.monitor, {}, false, {plain.recall});
  EXPECT_EQ(verdict.status, Status::failed);
  EXPECT_NE(verdict.reason.find("do not sum to 1"), std::string::npos) << verdict.reason;
}

// Changes counted from the step before instead of from what was pooled: they add up unseen.
TEST(Judge, AChangeThatIsComparedWithTheStepBeforeLeavesTheBound) {
  const StreamOptions options = small_options();
  Stream stream = make_streams(options)[0];
  const Form form = make_form("plain", false, options);
  const Groups groups{&stream, 0, -1, 96, 4, {{0, 4}}};
  const auto before = pools_of(form, groups, weights_of(form, groups));
  const auto keys = stream.group(0, 0, 4);
  const std::vector<double> pooled_from(keys.begin(), keys.end());
  const IncrementalSettings settings{0.1};
  for (int step = 0; step < 3; ++step) {
    const std::vector<double> last = stream.keys[0];
    for (std::size_t i = 0; i < 128; ++i) stream.keys[0][i] += 0.09;
    EXPECT_FALSE(must_pool(settings, stream.group(0, 0, 4), std::span(last).first(128)));
  }
  EXPECT_TRUE(must_pool(settings, stream.group(0, 0, 4), pooled_from));
  const auto now = pools_of(form, groups, weights_of(form, groups));
  EXPECT_GT(std::abs(now[0] - before[0]), staleness_bound(0.1, 0, pooled_from, 4)[0]);
}

TEST(Simulation, WrongSizesAreRefused) {
  StreamOptions options = small_options();
  options.tokens = 97;
  EXPECT_THROW(make_streams(options), ConfigError);
  options = small_options();
  options.steps = 40;
  EXPECT_THROW(make_streams(options), ConfigError);
  options = small_options();
  options.sequences = 1;
  EXPECT_THROW(make_streams(options), ConfigError);
  Settings settings;
  settings.edge.most_tokens = 95;
  EXPECT_THROW(run(small_options(), "gated", false, settings), ConfigError);
}

}  // namespace
}  // namespace indexpool::verify::strategies
