// Kernels on the roofline of their device: operations for each byte of device memory, against
// operations a second.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/record.hpp"

namespace indexpool::reports {

// A line that no point of the device lies above.
struct Ceiling {
  std::string name;     // "HBM read", "bf16 and f16 matrix units"
  bool memory = false;  // rate in bytes/s, the line rises; else in FLOP/s, and it is level
  double rate = 0;
  std::string source;
};
// HBM, L2, the matrix units by dtype (rates within 3 % share a line) and f32, as the device reaches
// them.
std::vector<Ceiling> ceilings(const DeviceSpec& device);

struct RooflinePoint {
  std::string kernel, what;                 // what: "logits, 1M tokens"
  double flop = 0, bytes = 0;               // multiply and add count as two; bytes of HBM
  double predicted = 0, low = 0, high = 0;  // seconds
  double measured = 0;                      // seconds; 0: nobody did
};
// Of records whose prediction is for `device` and whose work is known: Record::values has
// predicted_matrix_flop and predicted_f32_flop, or work_matrix_flop and work_f32_flop (then the
// prediction is of the record's own problem, and its measurement belongs to it). Bytes are those
// that reach HBM; of a run whose inputs lay in the L2 those that would have, each once.
std::vector<RooflinePoint> roofline_points(const std::vector<Record>& records,
                                           const std::string& device);

// Static SVG as in plots.hpp; every mark carries data-flop, data-bytes and data-seconds. Predicted
// times are filled, with their interval; measured ones hollow. Points without operations can't be
// drawn (see roofline_note). Empty when no point can.
std::string roofline_plot(const std::vector<Ceiling>& ceilings,
                          const std::vector<RooflinePoint>& points);
// A section of a page, with the plot; nothing when the plot is empty.
std::string roofline_markup(const DeviceSpec& device, const std::vector<RooflinePoint>& points);
// Which kernels compute nothing and so are not on it; empty when all are.
std::string roofline_note(const std::vector<RooflinePoint>& points);

}  // namespace indexpool::reports
