// Faults into bytes that the kernels wrote: between the store and the fold ("fresh"), and between
// the fold and the consumer.
#include <algorithm>
#include <functional>
#include <thread>

#include "indexpool/verify/faults/sites.hpp"

namespace indexpool::verify::faults {
namespace {

// A part of a page's bytes.
struct Range {
  std::size_t first = 0, size = 0;
};
using Region = Range (*)(const PageShape& shape, const StoredPage& page);

Range code_region(const PageShape& shape, const StoredPage& page) {
  return {0, page.checksums.size() * static_cast<std::size_t>(shape.code_bytes())};
}
Range scale_region(const PageShape& shape, const StoredPage& page) {
  return {static_cast<std::size_t>(shape.scales_at()), page.checksums.size() * 4};
}
Range whole_page(const PageShape&, const StoredPage& page) { return {0, page.bytes.size()}; }

// What one thread works on.
struct Workspace {
  std::vector<std::byte> page;
  std::vector<kernels::PoolChecksum> checksums;
  std::vector<Touched> touched;
};

// States whose codes or scale lie at a page's touched words, each once. A word outside of them
// (padding, states not written) belongs to none.
std::vector<std::int64_t> touched_states(const PageShape& shape, const StoredPage& page,
                                         const std::vector<Touched>& touched) {
  std::vector<std::int64_t> states;
  for (const Touched& word : touched) {
    const auto offset = static_cast<std::int64_t>(word.offset);
    const std::int64_t state =
        offset < shape.scales_at()
            ? offset / shape.code_bytes()
            : (offset - shape.scales_at()) / std::max<std::int64_t>(shape.scale_bytes(), 1);
    if (state < static_cast<std::int64_t>(page.checksums.size())) states.push_back(state);
  }
  std::ranges::sort(states);
  states.erase(std::unique(states.begin(), states.end()), states.end());
  return states;
}

const StoredPage& pick_page(const Batch& batch, std::int64_t trial) {
  const auto& pages = batch.bench.pages;
  return pages[static_cast<std::size_t>(batch.random.integer(
      trial * (draws_per_fault + 1), 0, static_cast<std::int64_t>(pages.size()) - 1))];
}

// A copy of the page with a fault in `range`, the touched words counted from the page's start.
void strike_copy(const Batch& batch, std::int64_t trial, const StoredPage& page, Range range,
                 Workspace& work) {
  work.page = page.bytes;
  work.touched.clear();
  batch.model.strike(std::span(work.page).subspan(range.first, range.size), batch.random,
                     trial * (draws_per_fault + 1) + 1, work.touched);
  for (Touched& word : work.touched) word.offset += range.first;
}

bool any_differs(const PageShape& shape, const StoredPage& page, const Workspace& work,
                 const std::vector<std::int64_t>& states) {
  return std::ranges::any_of(states, [&](std::int64_t state) {
    return state_differs(shape, page.bytes, work.page, state);
  });
}

template <class Trial>
Outcomes each_trial(const Batch& batch, const Trial& trial) {
  const auto worker = [&](std::int64_t first, std::int64_t last, Outcomes& outcomes) {
    Workspace work;
    for (std::int64_t t = first; t < last; ++t) trial(t, work, outcomes);
  };
  const std::int64_t cores = std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
  const std::int64_t wanted = batch.bench.options.threads > 0 ? batch.bench.options.threads : cores;
  const std::int64_t threads = std::min(wanted, std::max<std::int64_t>(batch.trials / 100, 1));
  std::vector<Outcomes> parts(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t first = batch.trials * i / threads, last = batch.trials * (i + 1) / threads;
    running.emplace_back(worker, first, last, std::ref(parts[static_cast<std::size_t>(i)]));
  }
  Outcomes all;
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i].join();
    all += parts[i];
  }
  return all;
}

// After the fold: the seal is of the clean page.
Outcomes strike_sealed(const Batch& batch, Region region) {
  const PageShape& shape = batch.bench.shape;
  return each_trial(batch, [&](std::int64_t trial, Workspace& work, Outcomes& outcomes) {
    const StoredPage& page = pick_page(batch, trial);
    strike_copy(batch, trial, page, region(shape, page), work);
    const auto states = touched_states(shape, page, work.touched);
    count(outcomes, any_differs(shape, page, work, states),
          check_page(shape, work.page, page.seal));
  });
}

// The fold of a page's pools, then the consumer. Pools that the fault left alone were checked in
// the clean runs: their checks are the same again.
Alarms fold_and_read(const Batch& batch, const Workspace& work,
                     const std::vector<std::int64_t>& states) {
  const PageShape& shape = batch.bench.shape;
  Alarms alarms = 0;
  for (const std::int64_t state : states) {
    alarms |= check_pool(shape, batch.bench.link, codes_of(shape, work.page, state),
                         scale_of(shape, work.page, state),
                         work.checksums[static_cast<std::size_t>(state)]);
  }
  PageSeal seal;
  for (const kernels::PoolChecksum& sum : work.checksums) append(seal, shape, work.page, sum);
  return alarms | check_page(shape, work.page, seal);
}

// Before the fold: the seal is of the faulty page, and only the kernel's checksums are older.
Outcomes strike_fresh(const Batch& batch, Region region) {
  const PageShape& shape = batch.bench.shape;
  return each_trial(batch, [&](std::int64_t trial, Workspace& work, Outcomes& outcomes) {
    const StoredPage& page = pick_page(batch, trial);
    strike_copy(batch, trial, page, region(shape, page), work);
    work.checksums = page.checksums;
    const auto states = touched_states(shape, page, work.touched);
    count(outcomes, any_differs(shape, page, work, states), fold_and_read(batch, work, states));
  });
}

}  // namespace

void count(Outcomes& outcomes, bool visible, Alarms alarms) {
  ++outcomes.trials;
  if (!visible) {
    outcomes.needless += alarms != 0 ? 1 : 0;
    return;
  }
  ++outcomes.visible;
  outcomes.detected += alarms != 0 ? 1 : 0;
  for (int layer = 0; layer < layer_count; ++layer) {
    outcomes.detected_by[layer] += (alarms & layers()[layer].bit) != 0 ? 1 : 0;
  }
}

Outcomes strike_codes(const Batch& batch) { return strike_sealed(batch, code_region); }
Outcomes strike_scales(const Batch& batch) { return strike_sealed(batch, scale_region); }
Outcomes strike_pages(const Batch& batch) { return strike_sealed(batch, whole_page); }
Outcomes strike_fresh_codes(const Batch& batch) { return strike_fresh(batch, code_region); }
Outcomes strike_fresh_scales(const Batch& batch) { return strike_fresh(batch, scale_region); }

Outcomes strike_seals(const Batch& batch) {
  const auto& pages = batch.bench.pages;
  std::vector<PageSeal> clean(pages.size());
  std::ranges::transform(pages, clean.begin(), &StoredPage::seal);
  return each_trial(batch, [&](std::int64_t trial, Workspace& work, Outcomes& outcomes) {
    std::vector<PageSeal> seals = clean;
    const auto bytes = std::as_writable_bytes(std::span(seals));
    work.touched.clear();
    batch.model.strike(bytes, batch.random, trial * (draws_per_fault + 1) + 1, work.touched);
    Alarms alarms = 0;
    for (const Touched& word : work.touched) {
      const std::size_t page = word.offset / sizeof(PageSeal);
      alarms |= check_page(batch.bench.shape, pages[page].bytes, seals[page]);
    }
    count(outcomes, false, alarms);
  });
}

Outcomes strike_fresh_sums(const Batch& batch) {
  return each_trial(batch, [&](std::int64_t trial, Workspace& work, Outcomes& outcomes) {
    const StoredPage& page = pick_page(batch, trial);
    work.page = page.bytes;
    work.checksums = page.checksums;
    work.touched.clear();
    batch.model.strike(std::as_writable_bytes(std::span(work.checksums)), batch.random,
                       trial * (draws_per_fault + 1) + 1, work.touched);
    std::vector<std::int64_t> states;
    for (const Touched& word : work.touched) {
      states.push_back(static_cast<std::int64_t>(word.offset / sizeof(kernels::PoolChecksum)));
    }
    states.erase(std::unique(states.begin(), states.end()), states.end());
    count(outcomes, false, fold_and_read(batch, work, states));
  });
}

}  // namespace indexpool::verify::faults
