// Reads the config.json of a published checkpoint, unmodified. Internal to the layer.
#pragma once

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

// Keys that memory does not depend on are passed over; those it depends on must be there and make
// sense together. Throws ConfigError with the JSON pointer for a missing or impossible value, a
// value with a unit in it, an unknown model_type or layer type.
Architecture read_checkpoint_config(const JsonValue& root);

}  // namespace indexpool
