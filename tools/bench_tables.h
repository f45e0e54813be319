// The shapes that clnet-bench measures. A row may be added anywhere; its name comes from its numbers.
#pragma once

#include <cstdint>

namespace clnet::bench {

/// Input {n, in, size, size}, weight {out, in / groups, kernel, kernel}, padding kernel / 2.
struct Conv {
  std::int64_t n, in, out, size, kernel, stride = 1, groups = 1;
};

/// `batch` products of {m, k} times {k, n}; 0: one, of matrices.
struct Product {
  std::int64_t m, n, k, batch = 0;
};

/// Two layers over sequences {64, 32, hidden}.
struct Recurrent {
  const char* name;
  std::int64_t gates, hidden;
};
constexpr Recurrent recurrents[] = {{"lstm", 4, 128}, {"lstm", 4, 512}, {"gru", 3, 128}, {"gru", 3, 512}};

/// A convolution of `axes` axes of `size` each, padding kernel / 2.
struct AxesConv {
  int axes;
  bool transposed;
  std::int64_t n, in, out, size, kernel, stride;
};
constexpr AxesConv axes_convs[] = {
    {1, false, 16, 64, 64, 1024, 3, 1}, {1, false, 16, 1, 64, 16000, 25, 4}, {1, false, 32, 128, 128, 256, 9, 1},
    {1, false, 8, 256, 512, 512, 3, 2}, {1, false, 4, 512, 512, 128, 5, 1},  {1, false, 64, 16, 32, 512, 7, 1},
    {1, false, 1, 64, 64, 8192, 3, 1},  {1, false, 16, 256, 256, 64, 1, 1},  {3, false, 2, 1, 16, 48, 3, 1},
    {3, false, 2, 16, 16, 32, 3, 1},    {3, false, 2, 16, 32, 32, 3, 2},     {3, false, 2, 32, 32, 16, 3, 1},
    {3, false, 4, 64, 64, 8, 3, 1},     {3, false, 1, 3, 32, 48, 5, 2},      {3, false, 8, 32, 64, 12, 3, 1},
    {3, false, 2, 64, 64, 16, 1, 1},    {1, true, 16, 64, 32, 512, 4, 2},    {1, true, 8, 128, 64, 1024, 16, 8},
    {1, true, 32, 32, 32, 256, 3, 1},   {2, true, 16, 64, 32, 32, 4, 2},     {2, true, 8, 128, 64, 28, 2, 2},
    {2, true, 16, 100, 128, 8, 4, 2},   {2, true, 64, 100, 128, 7, 3, 1},    {2, true, 64, 64, 1, 14, 4, 2},
    {3, true, 2, 32, 16, 16, 2, 2},     {3, true, 2, 32, 32, 8, 4, 2}};

/// A pool over planes of {n, channels, size, size}, padding (kernel - 1) / 2.
struct Pool {
  bool max;
  std::int64_t n, channels, size, kernel, stride;
};
constexpr Pool pools[] = {{true, 16, 64, 112, 3, 2}, {false, 16, 64, 112, 3, 2}, {true, 16, 64, 112, 2, 2},
                          {true, 2, 32, 512, 3, 2},  {false, 2, 32, 512, 3, 2},  {true, 2, 32, 512, 2, 2},
                          {false, 2, 32, 512, 2, 2}, {false, 16, 64, 112, 3, 1}};

/// Means over planes of {n, channels, size, size} to planes of `out` by `out`; 0: over all of a plane, the global pool.
struct AdaptivePool {
  std::int64_t n, channels, size, out;
};
constexpr AdaptivePool adaptive_pools[] = {{16, 64, 112, 7}, {16, 64, 112, 0}};

/// `count` rows of a table {rows, width}.
struct Embedding {
  std::int64_t rows, width, count;
};
constexpr Embedding embeddings[] = {{50000, 512, 8192}};

/// `macs`: multiply-adds of all layers for one image, `first` those of the first, whose input needs no gradient.
struct Network {
  const char* name;
  std::int64_t channels, size, classes;
  double macs, first;
  std::int64_t training_batch;  ///< of images as large as photographs; 0: it is not trained here
};

constexpr Conv convs[] = {
    // the comparison with PyTorch
    {16, 3, 64, 224, 3},
    {16, 64, 64, 56, 3},
    {16, 128, 128, 28, 3},
    {16, 256, 256, 14, 3},
    {16, 512, 512, 7, 3},
    {16, 256, 64, 56, 1},
    {16, 64, 256, 56, 1},
    {16, 144, 144, 56, 3, 1, 144},
    {16, 96, 96, 56, 3, 1, 96},
    // clnet-train's keras-cnn and cnn
    {64, 1, 32, 28, 3},
    {64, 32, 64, 14, 3},
    // ResNet-18: what is not above
    {16, 3, 64, 224, 7, 2},
    {16, 64, 128, 56, 3, 2},
    {16, 128, 256, 28, 3, 2},
    {16, 256, 512, 14, 3, 2},
    {16, 64, 128, 56, 1, 2},
    {16, 128, 256, 28, 1, 2},
    {16, 256, 512, 14, 1, 2},
    // ResNet-50
    {16, 64, 64, 56, 1},
    {16, 256, 128, 56, 1},
    {16, 256, 512, 56, 1, 2},
    {16, 128, 512, 28, 1},
    {16, 512, 128, 28, 1},
    {16, 512, 256, 28, 1},
    {16, 512, 1024, 28, 1, 2},
    {16, 256, 1024, 14, 1},
    {16, 1024, 256, 14, 1},
    {16, 1024, 512, 14, 1},
    {16, 1024, 2048, 14, 1, 2},
    {16, 512, 2048, 7, 1},
    {16, 2048, 512, 7, 1},
    {16, 128, 128, 56, 3, 2},
    {16, 256, 256, 28, 3, 2},
    {16, 512, 512, 14, 3, 2},
    // MobileNetV2
    {16, 3, 32, 224, 3, 2},
    {16, 32, 32, 112, 3, 1, 32},
    {16, 96, 96, 112, 3, 2, 96},
    {16, 144, 144, 56, 3, 2, 144},
    {16, 192, 192, 28, 3, 1, 192},
    {16, 192, 192, 28, 3, 2, 192},
    {16, 384, 384, 14, 3, 1, 384},
    {16, 576, 576, 14, 3, 1, 576},
    {16, 576, 576, 14, 3, 2, 576},
    {16, 960, 960, 7, 3, 1, 960},
    {16, 32, 16, 112, 1},
    {16, 16, 96, 112, 1},
    {16, 96, 24, 56, 1},
    {16, 24, 144, 56, 1},
    {16, 144, 24, 56, 1},
    {16, 144, 32, 28, 1},
    {16, 32, 192, 28, 1},
    {16, 192, 64, 14, 1},
    {16, 64, 384, 14, 1},
    {16, 384, 96, 14, 1},
    {16, 96, 576, 14, 1},
    {16, 576, 160, 7, 1},
    {16, 160, 960, 7, 1},
    {16, 960, 320, 7, 1},
    {16, 320, 1280, 7, 1},
    // VGG-16
    {8, 3, 64, 224, 3},
    {8, 64, 64, 224, 3},
    {8, 64, 128, 112, 3},
    {8, 128, 128, 112, 3},
    {8, 128, 256, 56, 3},
    {8, 256, 256, 56, 3},
    {8, 256, 512, 28, 3},
    {8, 512, 512, 28, 3},
    {8, 512, 512, 14, 3},
    // of the kinds that DeepBench has
    {16, 192, 32, 28, 5},
    {16, 192, 64, 28, 1},
    {16, 512, 48, 14, 5},
    {16, 512, 192, 14, 1},
    {16, 832, 128, 7, 5},
    {16, 832, 256, 7, 1},
};

/// Squares are named matmul-1024, others matmul-MxNxK, batches of them matmul-64-b64; some squares are there in f16 and bf16, too
/// (matmul-1024-f16).
constexpr Product products[] = {
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {2048, 2048, 2048},
    // of the kinds that DeepBench has: recurrent layers at several batch sizes, speech, skinny ones
    {1760, 16, 1760},
    {1760, 64, 1760},
    {1760, 128, 1760},
    {2560, 64, 2560},
    {5124, 700, 2048},
    {35, 700, 2048},
    {1, 1000, 2048},
    // batches
    {64, 64, 64, 64},
    {128, 128, 128, 64},
    {256, 256, 256, 64},
    {512, 512, 512, 64},
};

/// x {m, k} by a weight {n, k}, forward and both gradients: cnn's first linear layer, and ResNet-18's at two batch sizes.
constexpr Product linears[] = {{64, 128, 3136}, {1, 1000, 512}, {16, 1000, 512}};

constexpr Network networks[] = {
    {"keras-cnn", 1, 28, 10, 248768, 194688, 0},
    {"cnn", 1, 28, 10, 4241152, 225792, 0},
    {"lenet5", 1, 28, 10, 416520, 117600, 0},
    {"resnet18", 3, 224, 1000, 1814073344, 118013952, 16},
    {"resnet50", 3, 224, 1000, 4089184256, 118013952, 8},
    {"vgg16", 3, 224, 1000, 15470264320, 86704128, 0},
    {"mobilenetv2", 3, 224, 1000, 300774272, 10838016, 16},
};

}  // namespace clnet::bench
