// What clnet-train does with networks that write: texts, alphabets in files of weights, samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "clnet/models.h"
#include "tools/clnet_train_options.h"

namespace clnet::tools {

using Metadata = std::map<std::string, std::string>;

/// What is written beside the weights of a network of that alphabet.
Metadata metadata_of(const std::string& model, const std::string& alphabet);
/// Throws Error unless weights with this metadata, where it tells of an alphabet, are for this one.
void require_alphabet(const Metadata& metadata, const std::string& alphabet);

/// --prompt, or what a text begins with; throws Error for characters that are not in the alphabet.
std::string prompt_of(const TrainOptions& options, const std::string& alphabet);
/// Some characters behind the prompt, all lines indented.
std::string shown_sample(const TrainOptions& options, models::LanguageModel& model, const std::string& alphabet);

/// --sample: writes to stdout, as the characters come.
void write_sample(const TrainOptions& options);

}  // namespace clnet::tools
