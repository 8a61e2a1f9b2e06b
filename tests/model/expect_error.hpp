// What an error text says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool {

// The text of the ConfigError that `action` throws; "" and a failed test when it throws none.
inline std::string config_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error than ConfigError: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

// `text` holds every one of `parts`.
inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
  }
}

}  // namespace indexpool
