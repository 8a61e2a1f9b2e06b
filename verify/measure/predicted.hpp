// From a measured record back to what was launched, and to what the cost model says of it today.
#pragma once

#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/measure/grid.hpp"

namespace indexpool::verify::timing {

// The point and its geometry go into problem, op, implementation and values, and come back.
void store_point(const Point& point, const Geometry& geometry, Record& record);
bool is_measured_point(const Record& record);
struct StoredPoint {
  Point point;
  Geometry geometry;
};
// Throws ConfigError naming what the record lacks.
StoredPoint stored_point(const Record& record);

// What the kernel declares for one launch at a point. Any target's table will do: simt has them
// all. Throws ConfigError for an unknown kernel.
Work declared_work(const Point& point, const Geometry& geometry);
// The declared work in a record's values, "work_..." each.
void store_work(const Work& work, Record& record);

// How a record was timed, as the cost model wants it.
CostOptions timed_as(const Measurement& measurement);

// The record with today's declared work and prediction in place of those it was stored with; its
// time, verdict and environment stay.
Record predicted_anew(Record record, const DeviceSpec& device);

}  // namespace indexpool::verify::timing
