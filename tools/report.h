// clnet-info --report: what the owner of a device can send.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace clnet::tools {

/// Of the file's layout: another one when a field goes or changes its meaning.
constexpr int report_version = 1;

/// Adds to `report` (versions and the device) what the quick self-test finds and how long ten of clnet-bench's items take on the
/// device of this selector, each in processes of their own, as drivers may crash. Writes all to the file after each part, so that
/// an ended run leaves what it has, and says on stdout what was found. Throws FileError when it cannot be written.
void write_report(const std::string& path, nlohmann::ordered_json report, const std::string& selector);

/// The process that measures, from the item of this index on: a line of JSON for the device's peak and one for each item.
void measure_for_report(int first);

}  // namespace clnet::tools
