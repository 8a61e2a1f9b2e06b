// The worker's signal handler: notes where a fault happened, then lets it kill the process.
#pragma once

#include "indexpool/verify/plugin/protocol.hpp"

namespace indexpool::verify::plugin {

// `control` stays mapped for good, at `control`. Handlers run on a stack of their own, so that an
// overflowing stack can be told.
void watch_faults(Control* control);

// While the plugin runs its writes cannot reach the control block.
void lock(Control* control);
void unlock(Control* control);

}  // namespace indexpool::verify::plugin
