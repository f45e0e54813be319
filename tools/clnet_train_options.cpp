#include "tools/clnet_train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "clnet/data.h"
#include "clnet/error.h"
#include "clnet/metrics.h"
#include "clnet/models.h"
#include "clnet/version.h"
#include "tools/help.h"
#include "tools/options_fault.h"

namespace clnet::tools {

namespace {

/// A number from `low` on, or above it; CLI's own checks let NaN through.
CLI::Validator number(double low, bool including, double below = std::numeric_limits<double>::infinity()) {
  auto wanted = fmt::format("{} {}", including ? "from" : "above", low);
  if (std::isfinite(below)) wanted += fmt::format(", below {}", below);
  return {[=](std::string& text) -> std::string {
            double value = NAN;
            if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || value < low || (!including && value == low) ||
                value >= below)
              return fmt::format("{} is not a number {}", text, wanted);
            return {};
          },
          ""};
}

CLI::Validator share() {
  return {[checked = number(0, true)](std::string& text) -> std::string { return text == "auto" ? "" : checked(text); }, ""};
}

CLI::Validator count(std::int64_t most = 1'000'000'000) {
  return {[most](std::string& text) -> std::string {
            std::int64_t value = 0;
            if (!CLI::detail::lexical_cast(text, value) || value < 1 || value > most)
              return fmt::format("{} is not a whole number from 1 to {}", text, most);
            return {};
          },
          ""};
}

/// Any unsigned number; CLI takes -1 for a large one.
CLI::Validator seed() {
  return {[](std::string& text) -> std::string {
            std::uint64_t value = 0;
            const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (code == std::errc() && end == text.data() + text.size()) return {};
            return fmt::format("{} is not a whole number from 0 to 2^64 - 1", text);
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto list = fmt::format("{}", fmt::join(words, ", "));
  return {[words, list](std::string& text) -> std::string {
            if (std::find(words.begin(), words.end(), text) != words.end()) return {};
            return fmt::format("'{}' is not one of {}", text, list);
          },
          ""};
}

bool is_onnx(const std::string& model) { return std::filesystem::path(model).extension() == ".onnx"; }

CLI::Validator model() {
  return {[](std::string& text) -> std::string {
            const auto names = models::names();
            if (is_onnx(text) || std::find(names.begin(), names.end(), text) != names.end()) return {};
            return fmt::format("'{}' is not one of {}, nor a file that ends in .onnx", text, fmt::join(names, ", "));
          },
          ""};
}

CLI::Validator not_empty(const char* wanted = "a name") {
  return {[=](std::string& text) { return text.empty() ? fmt::format("{} is needed, got nothing", wanted) : ""; }, ""};
}

/// A file whose ending names a format that is written.
CLI::Validator picture() {
  return {[](std::string& text) -> std::string {
            const auto ending = std::filesystem::path(text).extension();
            if (ending == ".bmp" || (ending == ".png" && data::reads_images("png"))) return {};
            return fmt::format("{} does not end in {}", text,
                               data::reads_images("png") ? ".png or .bmp" : ".bmp: this clnet was built without libpng");
          },
          ""};
}

CLI::Validator metric() {
  return {[](std::string& text) -> std::string {
            try {
              constexpr std::int64_t some_classes = 2;
              (void)metrics::make(text, some_classes);
              return {};
            } catch (const Error& error) {
              return error.what();
            }
          },
          ""};
}

void define(CLI::App& app, TrainOptions& o) {
  const auto option = [&](const char* group, const char* name, auto& target, const char* type, const char* meaning) {
    return app.add_option(name, target, meaning)
        ->type_name(type)
        ->group(group)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  const char* group = "Data";
  option(group, "--data", o.data, "NAME|PATH",
         "fashion-mnist, mnist, cifar10, or a folder with IDX or CIFAR-10 files; or a folder with a folder of PNG, JPEG or BMP "
         "files per class, of which a fifth is the test set unless there are folders train and test of such; or a file of text "
         "for the char- models, whose last tenth is the validation set (default: fashion-mnist)")
      ->check(not_empty());
  option(group, "--normalize", o.normalize, "KIND",
         "none: pixels from 0 to 1; mean-std: minus the training set's mean, by its deviation, per channel (default: what the "
         "metadata of an ONNX file say, else none)")
      ->check(one_of({"none", "mean-std"}));
  option(group, "--image-size", o.image_size, "N",
         "of a folder of image files: pixels of each side (default: what an ONNX file says, else 224 for it and for resnet18, "
         "resnet50, vgg16 and mobilenetv2, else 32)")
      ->check(count(4096));
  app.add_flag("--augment", o.augment, "of a folder of image files: random cuts, mirroring and light in training")->group(group);
  option(group, "--workers", o.workers, "N", "threads that make batches (default: 1; of a folder of image files, one per core)")
      ->check(count(256));
  option(group, "--batch-size", o.batch_size, "N", "images per step (default: 128), or samples of a text (default: 32)")
      ->check(count());
  option(group, "--context", o.context, "N", "of a text: characters in a sample (default: 64)")->check(count(65536));
  app.add_flag("--no-shuffle", o.no_shuffle, "take the samples in the files' order in every epoch")->group(group);

  group = "Model";
  option(
      group, "--model", o.model, "NAME|FILE",
      "mlp, keras-cnn, cnn, lenet5, resnet20, resnet18, resnet50, vgg16 or mobilenetv2 (default: cnn); of text char-lstm or "
      "char-gpt (default: char-gpt); or a classifier of images in a file that ends in .onnx, whose input says the images' size")
      ->check(model());
  app.add_flag("--freeze-statistics", o.freeze_statistics,
               "of an ONNX file: batch norm normalizes by the file's statistics, and keeps them")
      ->group(group);
  option(group, "--replace-head", o.replace_head, "CLASSES",
         "of an ONNX file: a fresh last linear layer with so many outputs, for other classes than the file's")
      ->check(count(1'000'000));
  app.add_option("--freeze", o.freeze,
                 "do not train parameters of these names; * stands for any characters, ? for one; may be given several times; a "
                 "fresh head is trained anyway")
      ->type_name("PATTERN")
      ->group(group)
      ->allow_extra_args(false)
      ->check(not_empty());
  option(
      group, "--init", o.init, "FILE",
      "start from these weights (safetensors, .npz, .onnx, or .pt, .pth, .ckpt and .bin of PyTorch; names and shapes must be the "
      "model's)")
      ->check(not_empty());

  group = "Training";
  option(group, "--epochs", o.epochs, "N", "passes over the training set (default: 5, or what --steps says)")->check(count());
  option(group, "--steps", o.steps, "N", "train this many steps; with --epochs, whichever ends first")->check(count());
  option(group, "--optimizer", o.optimizer, "NAME", fmt::format("{} (default: adam)", fmt::join(optim::names(), ", ")).c_str())
      ->check(one_of(optim::names()));
  option(group, "--lr", o.learning_rate, "RATE",
         "learning rate, of one-cycle the highest (default: what suits the optimizer and the schedule; for adam 0.004 with "
         "one-cycle, else 0.001; a tenth of that for an ONNX file, which was trained before)")
      ->check(number(0, false));
  option(group, "--schedule", o.schedule, "NAME",
         "how the rate changes: constant; step: by a tenth every --decay-steps; cosine: down to 0; one-cycle: up for 30 % of the "
         "steps, then down (default: one-cycle)")
      ->check(one_of({"constant", "step", "cosine", "one-cycle"}));
  option(group, "--decay-steps", o.decay_steps, "N", "of --schedule step (default: a third of all steps)")->check(count());
  option(group, "--warmup-steps", o.warmup_steps, "N", "raise the rate evenly over the first N steps; not with one-cycle")
      ->check(count());
  option(group, "--momentum", o.momentum, "M", "(default: 0 for sgd and rmsprop, 0.9 for lars, 0.95 for muon)")
      ->check(number(0, true, 1));
  app.add_flag("--nesterov", o.nesterov, "Nesterov's momentum, with sgd and lars")->group(group);
  app.add_flag("--cycle-momentum", o.cycle_momentum,
               "with one-cycle: the momentum, or adam's beta1, from 0.95 to 0.85 while the rate goes up, and back")
      ->group(group);
  option(group, "--weight-decay", o.weight_decay, "W", "(default: 0.01 for adamw, 0.1 for muon, else 0)")->check(number(0, true));
  option(group, "--clip-norm", o.clip_norm, "NORM", "scale gradients down to at most this joint norm")->check(number(0, false));
  option(group, "--precision", o.precision, "DTYPE",
         "f32, f16 or bf16: what products are computed with; weights stay f32, and f16 scales the loss (default: f32)")
      ->check(one_of({"f32", "f16", "bf16"}));
  option(group, "--early-stopping", o.early_stopping, "N", "end when the test loss has not improved for N epochs")
      ->check(count());
  option(group, "--accumulate", o.accumulate, "N", "step once for every N batches, with the mean of their gradients")
      ->check(count());
  option(group, "--ema", o.ema, "DECAY", "average the weights by this decay, as 0.999, and test and save the averages")
      ->check(number(0, false, 1));
  app.add_option("--metrics", o.metrics,
                 "more numbers of each epoch: precision, recall, f1, miou, auc, perplexity, or top5 and other numbers")
      ->type_name("NAME,...")
      ->group(group)
      ->delimiter(',')
      ->check(metric());
  option(group, "--seed", o.seed, "N", "of initial weights, shuffling and dropout; same seed, same numbers (default: 1)")
      ->check(seed());

  group = "Writing, with a char- model";
  auto* sample = option(group, "--sample", o.sample, "N",
                        "write N characters on stdout instead of training, with the weights of --init, or those that training "
                        "saves without --save")
                     ->check(count());
  option(group, "--prompt", o.prompt, "TEXT",
         "what they follow, and the samples that are shown after each epoch (default: a new line)")
      ->check(not_empty("a text"));
  option(group, "--temperature", o.temperature, "T",
         "below 1, likely characters become likelier; 0: always the likeliest (default: 0.8)")
      ->check(number(0, true));
  option(group, "--top-k", o.top_k, "K", "only the K likeliest characters each time (default: all)")->check(count());
  option(group, "--top-p", o.top_p, "P",
         "of these, only the fewest likeliest ones whose probabilities sum to at least P, above 0 and at most 1 (default: 1)")
      ->check(number(0, false));

  group = "Output";
  option(group, "--save", o.save, "FILE", "where the trained weights go (safetensors; default: clnet-MODEL.safetensors)")
      ->check(not_empty());
  option(group, "--export", o.export_file, "FILE", "write the trained network as an ONNX file, too")->check(not_empty());
  auto* checkpoint = option(group, "--checkpoint", o.checkpoint, "DIR",
                            "keep a checkpoint in this folder, written after every epoch and at Ctrl-C")
                         ->check(not_empty());
  option(group, "--checkpoint-steps", o.checkpoint_steps, "N", "write it every N steps as well")
      ->check(count())
      ->needs(checkpoint);
  app.add_flag("--resume", o.resume,
               "go on from the checkpoint, where there is one, as if training had not stopped; more --epochs or --steps than "
               "before go on by the schedule for all of them")
      ->group(group)
      ->needs(checkpoint);
  option(group, "--log", o.log, "FILE", "a JSON object per step and per epoch, one a line; --resume continues it")
      ->check(not_empty());
  option(group, "--tensorboard", o.tensorboard, "DIR", "event files for TensorBoard in this folder; --resume adds one")
      ->check(not_empty());
  option(group, "--csv", o.csv, "FILE", "a table with a row per epoch; --resume continues it")->check(not_empty());
  option(group, "--plot", o.plot, "FILE", "draw the curves of loss and accuracy (SVG)")->check(not_empty());
  option(group, "--sheet", o.sheet, "FILE",
         "the test pictures with the largest loss, of a folder of images (PNG or BMP; default: beside --save, as "
         "clnet-MODEL-worst.png)")
      ->check(picture());
  option(group, "--trace", o.trace, "FILE", "the times of all kernels as a Chrome trace, for Perfetto (JSON)")
      ->check(not_empty());

  group = "Device";
  option(
      group, "--device", o.device, "WHICH",
      "gpu, cpu, accelerator, platform:device as in 0:1, or a part of a name; clnet-info lists them (default: CLNET_DEVICE, else "
      "the best GPU, else the CPU)")
      ->check(not_empty());
  option(
      group, "--devices", o.device_texts, "WHICH,...",
      "train on all of these at the same time, each with its share of every batch; under mpirun: the devices of the ranks on a "
      "host, in their order, gone through again where ranks are more; + gives a rank several, as 0:0+0:1,1:0 for two ranks")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes("--device");
  option(
      group, "--shares", o.share_texts, "N,...|auto",
      "of --devices: the parts of a batch in proportion, as 3,1 for three quarters on the first; under mpirun: of all devices of "
      "all ranks, in the order of ranks; auto, of one process: what the first 16 steps show, so that all are ready at the same "
      "time (default: equal)")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(share());
  app.add_flag("--strict-devices", o.strict_devices, "end where one of --devices fails, instead of going on with the others")
      ->group(group);
  app.add_flag("--sync-batch-norm", o.sync_batch_norm,
               "batch norm by the whole batch, over all of --devices or all ranks, instead of each one's part")
      ->group(group);
  option(group, "--exchange", o.exchange, "DTYPE", "under mpirun: ranks add gradients as f32, or as bf16 in half the bytes")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_flag("--shard-optimizer", o.shard_optimizer,
               "under mpirun: each rank keeps the optimizer's states for its part of the weights; same numbers, less memory")
      ->group(group);
  app.add_flag("--scatter-data", o.scatter_data,
               "under mpirun: rank 0 alone reads --data, and sends the others their share of each batch")
      ->group(group);
  for (const char* name : {"--image-size",
                           "--augment",
                           "--workers",
                           "--data",
                           "--normalize",
                           "--batch-size",
                           "--context",
                           "--no-shuffle",
                           "--epochs",
                           "--steps",
                           "--optimizer",
                           "--lr",
                           "--schedule",
                           "--decay-steps",
                           "--warmup-steps",
                           "--momentum",
                           "--nesterov",
                           "--cycle-momentum",
                           "--weight-decay",
                           "--clip-norm",
                           "--precision",
                           "--early-stopping",
                           "--save",
                           "--checkpoint",
                           "--log",
                           "--plot",
                           "--trace",
                           "--tensorboard",
                           "--csv",
                           "--metrics",
                           "--ema",
                           "--accumulate",
                           "--sheet",
                           "--freeze",
                           "--freeze-statistics",
                           "--replace-head"})
    sample->excludes(app.get_option(name));
}

/// What depends on other options, where it is not given.
void complete(TrainOptions& o) {
  std::error_code ignored;
  o.chosen_model = !o.model.empty();
  if (o.model.empty() && (!o.sample || o.init.empty()))
    o.model = o.sample || std::filesystem::is_regular_file(o.data, ignored) ? "char-gpt" : "cnn";
  auto name = o.model;
  if (is_onnx(o.model)) {
    o.file = o.model;
    const std::filesystem::path path = o.file;
    o.model = path.filename().string();
    name = path.stem().string();
  }
  const auto words = [](const std::string& text, char between) {
    std::vector<std::string> found;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find(between, at), text.size());
      found.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return found;
  };
  for (const auto& text : o.device_texts)
    for (const auto& own : words(text, ',')) o.devices.push_back(words(own, '+'));
  for (const auto& share : o.share_texts) {
    if (share == "auto")
      o.measures_shares = true;
    else
      o.shares.push_back(std::strtod(share.c_str(), nullptr));
  }
  if (o.batch_size == 0) o.batch_size = models::is_language_model(o.model) ? 32 : 128;
  const bool is_large =
      !o.file.empty() || o.model == "resnet18" || o.model == "resnet50" || o.model == "vgg16" || o.model == "mobilenetv2";
  o.chosen_normalize = !o.normalize.empty();
  if (!o.chosen_normalize) o.normalize = "none";
  o.chosen_image_size = o.image_size.has_value();
  if (!o.image_size) o.image_size = is_large ? 224 : 32;
  if (o.save.empty()) o.save = fmt::format("clnet-{}.safetensors", name);
  o.chosen_sheet = !o.sheet.empty();
  if (!o.chosen_sheet) {
    const std::filesystem::path save = o.save;
    o.sheet = save.parent_path() / (save.stem().string() + (data::reads_images("png") ? "-worst.png" : "-worst.bmp"));
  }
}

/// Two of the files that are written, if they are one: the later would replace the earlier.
std::string file_of_two(const TrainOptions& o) {
  const std::array<std::pair<const char*, const std::string*>, 8> files{{{"--save", &o.save},
                                                                         {"--export", &o.export_file},
                                                                         {"--checkpoint", &o.checkpoint},
                                                                         {"--log", &o.log},
                                                                         {"--csv", &o.csv},
                                                                         {"--plot", &o.plot},
                                                                         {"--sheet", &o.sheet},
                                                                         {"--trace", &o.trace}}};
  const auto place = [](const std::string& file) {
    std::error_code code;
    const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(file, code), code);
    return code ? std::filesystem::path(file) : path;
  };
  std::error_code ignored;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!files[i].second->empty() && !files[j].second->empty() && place(*files[i].second) == place(*files[j].second) &&
          !std::filesystem::is_character_file(*files[i].second, ignored))
        return fmt::format("{} and {}: both are {}", files[j].first, files[i].first, *files[i].second);
  return {};
}

std::size_t device_count(const TrainOptions& o) {
  return std::accumulate(o.devices.begin(), o.devices.end(), std::size_t{0},
                         [](std::size_t sum, const auto& own) { return sum + own.size(); });
}

/// What one option alone cannot tell. The text of the fault; empty when there is none.
std::string contradiction(const TrainOptions& o) {
  std::string fault;
  const auto refused = [&](const char* option, const optim::NamedOptions& alone) {
    try {
      optim::rule(o.optimizer, alone);
      return false;
    } catch (const Error& error) {
      fault = fmt::format("{}: {}", option, error.what());
      return true;
    }
  };
  if (refused("--momentum", {.momentum = o.momentum}) ||
      refused("--nesterov", {.momentum = o.momentum, .nesterov = o.nesterov}) ||
      refused("--weight-decay", {.weight_decay = o.weight_decay}))
    return fault;
  if (o.cycle_momentum && o.schedule != "one-cycle")
    return fmt::format("--cycle-momentum: goes with --schedule one-cycle, not {}", o.schedule);
  if (o.cycle_momentum && !optim::rule(o.optimizer, {.momentum = o.momentum})->momentum())
    return fmt::format("--cycle-momentum: {} has no momentum that could change{}", o.optimizer,
                       o.optimizer == "sgd" || o.optimizer == "rmsprop" ? "; give it --momentum" : "");
  if (o.decay_steps && o.schedule != "step") return fmt::format("--decay-steps: goes with --schedule step, not {}", o.schedule);
  if (o.warmup_steps && o.schedule == "one-cycle")
    return "--warmup-steps: one-cycle has a warm-up of its own; choose another --schedule";
  const bool is_named = o.data == "fashion-mnist" || o.data == "mnist" || o.data == "cifar10";
  if (o.scatter_data && !o.chosen_model && !is_named)
    return "--scatter-data: give --model, as ranks without the data cannot tell it by --data";
  const bool writes = o.model.empty() || models::is_language_model(o.model);
  if (o.sample && !writes) return fmt::format("--sample: {} writes nothing; use char-lstm or char-gpt", o.model);
  if (o.prompt && !writes) return fmt::format("--prompt: {} writes nothing; use char-lstm or char-gpt", o.model);
  if (o.temperature && !writes) return fmt::format("--temperature: {} writes nothing; use char-lstm or char-gpt", o.model);
  if (o.top_k && !writes) return fmt::format("--top-k: {} writes nothing; use char-lstm or char-gpt", o.model);
  if (o.top_p && *o.top_p > 1) return fmt::format("--top-p: {} is above 1", *o.top_p);
  if (o.top_p && !writes) return fmt::format("--top-p: {} writes nothing; use char-lstm or char-gpt", o.model);
  if (const auto shared = file_of_two(o); !shared.empty()) return shared;
  if (o.replace_head && o.file.empty()) return fmt::format("--replace-head: is for ONNX files, not for {}", o.model);
  if (o.freeze_statistics && o.file.empty()) return fmt::format("--freeze-statistics: is for ONNX files, not for {}", o.model);
  if (o.augment && writes) return fmt::format("--augment: is for images, not for {}", o.model);
  if (o.chosen_image_size && writes) return fmt::format("--image-size: is for images, not for {}", o.model);
  if (o.context && !writes) return fmt::format("--context: is for texts, not for {}", o.model);
  if (o.measures_shares && o.share_texts.size() > 1) return "--shares: auto beside numbers";
  for (const auto& own : o.devices)
    if (std::any_of(own.begin(), own.end(), [](const auto& device) { return device.empty(); }))
      return "--devices: a name is needed, got nothing";
  if (o.measures_shares && device_count(o) < 2) return "--shares: auto needs several --devices";
  if (!o.shares.empty() && std::all_of(o.shares.begin(), o.shares.end(), [](double share) { return share == 0; }))
    return "--shares: all are 0";
  if (o.strict_devices && device_count(o) < 2) return "--strict-devices: needs several --devices";
  if (o.normalize != "none" && writes) return fmt::format("--normalize: is for images, not for {}", o.model);
  return {};
}

struct UsualRate {
  const char* optimizer;
  double rate, one_cycle;
};
constexpr UsualRate usual_rates[] = {
    {"sgd", 0.01, 0.05},       {"asgd", 0.01, 0.05},     {"rprop", 0.001, 0.001}, {"lars", 1, 4},
    {"muon", 0.001, 0.004},    {"adam", 0.001, 0.004},   {"adamw", 0.001, 0.004}, {"nadam", 0.001, 0.004},
    {"radam", 0.001, 0.004},   {"adamax", 0.002, 0.008}, {"lamb", 0.002, 0.01},   {"lion", 0.0001, 0.0004},
    {"rmsprop", 0.001, 0.001}, {"adagrad", 0.01, 0.02},  {"adadelta", 1, 1},      {"adafactor", 0.01, 0.01}};

/// A network that was trained before takes smaller steps.
constexpr double slower_for_files = 10;

double usual_rate(const std::string& optimizer, bool one_cycle) {
  const auto found = std::find_if(std::begin(usual_rates), std::end(usual_rates),
                                  [&](const auto& usual) { return optimizer == usual.optimizer; });
  if (found == std::end(usual_rates)) throw Error(fmt::format("no learning rate is known for {}; give --lr", optimizer));
  return one_cycle ? found->one_cycle : found->rate;
}

constexpr const char* examples = R"(Examples:
  clnet-train
      the model cnn on Fashion-MNIST, 5 epochs, on the best device
  clnet-train --data ~/mnist --model keras-cnn --epochs 3 --plot curves.svg
      a folder with the four MNIST files
  clnet-train --data flowers --model resnet18 --augment
      a folder with a folder of photographs per class
  clnet-train --data flowers --model resnet18.onnx --replace-head 5 --freeze 'layer1.*' --freeze 'layer2.*'
      the same with a network from elsewhere, of which only the last layers are trained
  clnet-train --optimizer sgd --momentum 0.9 --schedule cosine --lr 0.05
  clnet-train --checkpoint run1 --checkpoint-steps 200 --log run1.jsonl
  clnet-train --checkpoint run1 --checkpoint-steps 200 --log run1.jsonl --resume
      the same, going on after it was stopped or killed
  clnet-train --data shakespeare.txt --model char-gpt
      learns to write, with samples after each epoch
  clnet-train --model char-gpt --sample 500 --prompt "ROMEO:"
      writes, with the weights that this saved

The first run of a network on a machine compiles its kernels, which may take a minute; later ones find them on disk.
Ctrl-C ends training after the current step and saves weights and checkpoint; before the first step it ends at once.
Exit code: 0; 1 when something is missing, damaged or fails; 2 for wrong options; 130 after Ctrl-C.)";

}  // namespace

std::optional<int> parse(int argc, char** argv, TrainOptions& options) {
  CLI::App app(
      "Trains a network to classify images or to write text, on any OpenCL device. Without options: the network cnn on "
      "Fashion-MNIST.\n"
      "Parameters are named as in PyTorch, so weights go to and from it unchanged.",
      "clnet-train");
  app.formatter(std::make_shared<HelpLayout>());
  app.footer(examples);
  app.set_version_flag("--version", std::string(version()));
  define(app, options);
  try {
    app.parse(argc, argv);
    complete(options);
    if (const auto fault = contradiction(options); !fault.empty()) throw CLI::ValidationError(fault);
    if (!options.context) options.context = 64;
    if (!options.temperature) options.temperature = 0.8;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clnet-train: {} (see --help)\n", fault_of(app, error));
    return 2;
  }
  return std::nullopt;
}

std::string fault_for_ranks(const TrainOptions& o, int ranks) {
  if (ranks > 1 && o.measures_shares) return "--shares: auto is for one process; give numbers for the devices of all ranks";
  if (ranks == 1 && !o.shares.empty() && o.shares.size() != device_count(o))
    return fmt::format("--shares: {} for {} devices; give --devices as many", o.shares.size(), device_count(o));
  return {};
}

optim::NamedOptions optimizer_options(const TrainOptions& o) {
  const double usual = usual_rate(o.optimizer, o.schedule == "one-cycle") / (o.file.empty() ? 1 : slower_for_files);
  return {.learning_rate = o.learning_rate.value_or(usual),
          .momentum = o.momentum,
          .nesterov = o.nesterov,
          .weight_decay = o.weight_decay,
          .clip_norm = o.clip_norm.value_or(0)};
}

}  // namespace clnet::tools
