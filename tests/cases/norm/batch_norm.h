#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/norm/batch_norm.h"

namespace clnet::testing {

inline std::vector<Case> batch_norm_cases() {
  struct Layout {
    Shape shape;
    bool affine = true;
    double eps = 1e-5;
    bool gradient = true;
  };
  std::vector<Case> cases;
  for (const auto& layout :
       {Layout{{4, 3, 5, 5}}, Layout{{2, 8, 3, 7}, true, 1e-3}, Layout{{16, 6}}, Layout{{1, 4, 9, 9}, false}, Layout{{5, 3, 4}},
        Layout{{2, 40}, false}, Layout{{33, 40}}, Layout{{9, 2, 19, 23}}, Layout{{3, 2, 100, 131}, true, 1e-5, false},
        Layout{{1500, 17}, true, 1e-5, false}, Layout{{2, 1, 150, 151}, true, 1e-5, false}, Layout{{2, 3, 6, 6}},
        Layout{{5, 2, 8}}, Layout{{3, 2, 100, 132}, true, 1e-5, false}, Layout{{2, 1, 150, 152}, true, 1e-5, false}}) {
    const Shape channels{layout.shape[1]};
    std::vector<Input> inputs{{layout.shape, -2, 3}};
    if (layout.affine) inputs.insert(inputs.end(), {{channels, 0.5, 2}, {channels, -1, 1}});
    cases.push_back({.name = fmt::format("training, x {}{}", to_string(layout.shape), layout.affine ? "" : " without weights"),
                     .inputs = inputs,
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       const auto result = batch_norm_training(in[0], layout.affine ? in[1] : Tensor{},
                                                               layout.affine ? in[2] : Tensor{}, layout.eps);
                       return {result.y, result.mean, result.var};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       const auto result = reference::batch_norm(in[0], layout.affine ? &in[1] : nullptr,
                                                                 layout.affine ? &in[2] : nullptr, layout.eps);
                       return {result.y, result.mean, result.var};
                     },
                     .gradient = layout.gradient});
  }
  return cases;
}

inline std::vector<Case> batch_norm_inference_cases() {
  std::vector<Case> cases;
  for (const Shape& shape : {Shape{4, 3, 5, 5}, Shape{7, 6}, Shape{2, 3, 8}})
    for (int given : {0, 1, 2}) {
      const Shape channels{shape[1]};
      std::vector<Input> inputs{{shape, -2, 3}, {channels, -1, 1}, {channels, 0.4, 2}};
      if (given >= 1) inputs.push_back({channels, 0.5, 2});
      if (given >= 2) inputs.push_back({channels, -1, 1});
      cases.push_back({.name = fmt::format("inference, x {}, {} of weight and bias", to_string(shape), given),
                       .inputs = inputs,
                       .run = [=](const auto& in) -> std::vector<Tensor> {
                         return {batch_norm_inference(in[0], in[1], in[2], given >= 1 ? in[3] : Tensor{},
                                                      given >= 2 ? in[4] : Tensor{}, 1e-3)};
                       },
                       .reference = [=](const auto& in) -> Arrays {
                         return {reference::batch_norm_inference(in[0], in[1], in[2], given >= 1 ? &in[3] : nullptr,
                                                                 given >= 2 ? &in[4] : nullptr, 1e-3)};
                       }});
    }
  return cases;
}

inline std::vector<Case> layer_norm_cases() {
  struct Layout {
    Shape shape;
    int dims;
    int given = 2;  // weight; weight and bias
    double eps = 1e-5;
  };
  std::vector<Case> cases;
  for (const auto& layout :
       {Layout{{2, 3, 4, 5}, 2}, Layout{{2, 3, 4, 5}, 3, 2, 1e-3}, Layout{{5, 33}, 1, 2, 1e-12}, Layout{{5, 33}, 1, 0},
        Layout{{5, 33}, 1, 1}, Layout{{130, 16}, 1}, Layout{{3, 1000}, 1}, Layout{{2, 2049}, 1}, Layout{{7}, 1}}) {
    const Shape normalized(std::vector<std::int64_t>(layout.shape.end() - layout.dims, layout.shape.end()));
    std::vector<Input> inputs{{layout.shape, -2, 3}};
    if (layout.given >= 1) inputs.push_back({normalized, 0.5, 2});
    if (layout.given >= 2) inputs.push_back({normalized, -1, 1});
    cases.push_back({.name = fmt::format("layer_norm of {} over the last {}, {} of weight and bias", to_string(layout.shape),
                                         layout.dims, layout.given),
                     .inputs = inputs,
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {layer_norm(in[0], layout.dims, layout.given >= 1 ? in[1] : Tensor{},
                                          layout.given >= 2 ? in[2] : Tensor{}, layout.eps)};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::layer_norm(in[0], normalized.numel(), layout.given >= 1 ? &in[1] : nullptr,
                                                     layout.given >= 2 ? &in[2] : nullptr, layout.eps)};
                     }});
  }
  return cases;
}

}  // namespace clnet::testing
