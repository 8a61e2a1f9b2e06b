// The code of the scenarios, by id.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/verify/field/field.hpp"

namespace indexpool::verify {

struct FieldRow {
  std::string_view id;
  std::vector<Check> (*checks)(FieldSide side);
};
std::span<const FieldRow> cache_scenarios();
std::span<const FieldRow> logits_scenarios();
std::span<const FieldRow> topk_scenarios();
std::span<const FieldRow> replay_scenarios();
std::span<const FieldRow> page_scenarios();
std::span<const FieldRow> buffer_scenarios();
std::span<const FieldRow> schedule_scenarios();

}  // namespace indexpool::verify
