// How serving engines plan a pooled indexer: pages, slots and addresses; work buffers; admission,
// shared layers and launch grids. Formulas alone: nothing is allocated or run.
#pragma once

#include "indexpool/model/serving_plan_buffers.hpp"
#include "indexpool/model/serving_plan_pages.hpp"
#include "indexpool/model/serving_plan_schedule.hpp"
