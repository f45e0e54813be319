// Changes of images against the bytes of torchvision 0.29.2 with Pillow 13.0.0, and its figures on floating-point images.
#include "lib/data/image_changes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/error.h"
#include "tests/support/temporary.h"
#include "tests/unit/image_files.h"

namespace clnet::data {
namespace {

using namespace clnet::test;

// Pixels of pattern(4, 6, 3, 5), and of pattern(5, 7, 1, 5) where they move.
constexpr std::string_view torch_brightness =
    "077ff73cb5ff72eaffa8ff25ddff5bff18915cd5ffa2ff1fe8ff65ff32ab0078f045bdffb2ff2fff0d85ff62da3fb8ff95ff"
    "12eaff68ff0d85ff72ea5fd8ffc5ff42ff2fa81d95ff";
constexpr std::string_view torch_brightness_down =
    "02305e1744722b59863f6d0e54812268093723507e3d6b0c588526721340002d5b1a48754371126404328425531845733866"
    "075986276404328a2b5924517f4a781971123f0b3866";
constexpr std::string_view torch_color =
    "0061e50186ff26abff5de20082ff00ff0071179cff59de0089ff00ff0083005ce0078cff64e900f90069ff1fa40388ff50d5"
    "008bff00f90069ff2aaf199eff71f600ff00810070f4";
constexpr std::string_view torch_color_down =
    "2d4f705274957799ba8aac66afd18b7a3556688aab86a862b6d8928c4768284a6b587a9b91b36d722d4ead68895476977d9f"
    "59b8da94722d4eb873946a8cad9ec07a8a45663c5e7f";
constexpr std::string_view torch_contrast =
    "0041c6007cff32b7ff6ef200a9ff19e400541a9fff67ec00b4ff24ff00710039be0186ff79fe00d70047ff21a6007fff59de"
    "00b7ff27d70047ff32b71ea2ff8eff00fe006e0059de";
constexpr std::string_view torch_contrast_down =
    "4d6e905c7d9e6b8cad7a9b5688aa649752736586a77899548bac679e597a4b6c8e5e80a17c9e58944f70ac66885d7e9f7496"
    "508cad68944f70b06b8c6687a882a35e9e587a537496";
constexpr std::string_view torch_sharpness =
    "0558ab2a7dd04fa2f574c71a99ec3fbe11644093e670e600b2ff22ff0076002fc93083d67bce21c8004aff20a9007fff67dd"
    "00a2f548b6095cfc4fa24295e888db2ece21741467ba";
constexpr std::string_view torch_sharpness_down =
    "0558ab2a7dd04fa2f574c71a99ec3fbe11644093e6709f5d8eab699a6a764776823083d67bce21a4506ebb6785617f9c6796"
    "54a2f548b6095cfc4fa24295e888db2ece21741467ba";
constexpr std::string_view torch_posterize =
    "0058a82878d048a0f070c01898e838b810604090e070c010a0f040d020700050a03080d078c820b00858f040902878d060b8"
    "08a0f048b00858f848a04090e888d828c820701060b8";
constexpr std::string_view torch_solarize =
    "0558542a822f4f5d0a74381a66133f411164406c19703c165f0c462f2376005359307c2984312149095c0e44682c802d6745"
    "0d5d0a4849095c034f5d426a1777242e312174146745";
constexpr std::string_view torch_autocontrast =
    "0355af2a7cd74ea6ff73cd0d9af538bf06603f96ee70ca09a0ff3ed11a73004ea83082dd7cd417b60056f23e982a7fda67c0"
    "00a3ff42b60056fe4ba54296f188e424ce1a701265c0";
constexpr std::string_view torch_equalize_rows =
    "08376ba3ceffff0d3b73a6d2ffff104277abd5ffff16487aaddcffff184f5b9bd7ff004288c5ffff2e6eb1f6ff185b9bd7ff"
    "004288c5ffff2e6eb1f6abffff3b8ddcff2573c3ff0858abffff378dd7ff2173c2ff0658a8ffff37";
constexpr std::string_view torch_shearx = "052a4f7499bee34070a0d0003060b6f12c67a2dd00fc4288ce145a004293e43586d700";
constexpr std::string_view torch_sheary = "052a4f000000004070a07499bee37bb6f1d0003060b6fc422c67a2ddf1429388ce145a";
constexpr std::string_view torch_translatex = "0000052a4f749900004070a0d00000007bb6f12c670000b6fc4288ce0000f14293e435";
constexpr std::string_view torch_translatey = "4070a0d00030607bb6f12c67a2ddb6fc4288ce145af14293e43586d700000000000000";
constexpr std::string_view torch_rotate = "000074993060002a4fd0d067a2dd4070f12c67145a7bb6f18888358600b6fc93e40000";
constexpr std::string_view torch_affine_smooth = "bedb928d2c4f28457375838d878f053fa1af8f62520000152f496e7300000000125ca4";

void check_recolour(std::string_view expected, Recolouring operation, double magnitude, bool is_flat = false) {
  INFO("operation " << static_cast<int>(operation) << ", magnitude " << magnitude);
  auto image = pattern(4, 6, 3, 5);
  if (is_flat)
    for (auto& byte : image.bytes) byte = static_cast<std::uint8_t>(byte / 3 + 40);
  recolour(image, operation, magnitude);
  CHECK(image.bytes == bytes_of(expected));
}

TEST_CASE("image changes: RandAugment's colours are Pillow's bytes") {
  check_recolour(torch_brightness, Recolouring::brightness, 0.45);
  check_recolour(torch_brightness_down, Recolouring::brightness, -0.45);
  check_recolour(torch_color, Recolouring::colour, 0.6);
  check_recolour(torch_color_down, Recolouring::colour, -0.6);
  check_recolour(torch_contrast, Recolouring::contrast, 0.6);
  check_recolour(torch_contrast_down, Recolouring::contrast, -0.6);
  check_recolour(torch_sharpness, Recolouring::sharpness, 0.9);
  check_recolour(torch_sharpness_down, Recolouring::sharpness, -0.9);
  check_recolour(torch_posterize, Recolouring::posterize, 5);
  check_recolour(torch_solarize, Recolouring::solarize, 119);
  check_recolour(torch_autocontrast, Recolouring::autocontrast, 0, true);
  auto large = pattern(24, 30, 1, 5);
  for (auto& byte : large.bytes) byte = static_cast<std::uint8_t>(byte / 2 + 30);
  recolour(large, Recolouring::equalize, 0);
  CHECK(Bytes(large.bytes.begin(), large.bytes.begin() + 90) == bytes_of(torch_equalize_rows));
  CHECK(std::accumulate(large.bytes.begin(), large.bytes.end(), 0) == 117807);
  auto small = pattern(2, 3, 1);  // too few pixels, and one colour
  recolour(small, Recolouring::equalize, 0);
  CHECK(small.bytes == pattern(2, 3, 1).bytes);
  Pixels flat{.height = 1, .width = 2, .channels = 1, .bytes = {7, 7}};
  recolour(flat, Recolouring::autocontrast, 0);
  CHECK(flat.bytes == Bytes{7, 7});
}

TEST_CASE("image changes: affine maps are torchvision's") {
  const auto image = pattern(5, 7, 1, 5);
  const Point corner{0, 0}, centre{3.5, 2.5};
  const auto degrees = [](double tangent) { return std::atan(tangent) * 180 / 3.14159265358979323846; };
  const auto moved = [&](const AffineChange& change, Point about) {
    return warped(image, affine_of(change, about), 0, false).bytes;
  };
  CHECK(moved({.shear_x = degrees(0.3)}, corner) == bytes_of(torch_shearx));
  CHECK(moved({.shear_y = degrees(-0.2)}, corner) == bytes_of(torch_sheary));
  CHECK(moved({.move = {2, 0}}, corner) == bytes_of(torch_translatex));
  CHECK(moved({.move = {0, -1}}, corner) == bytes_of(torch_translatey));
  CHECK(moved({.degrees = -25}, centre) == bytes_of(torch_rotate));
  const AffineChange all{.degrees = 20, .scale = 1.25, .shear_x = 15, .shear_y = -8, .move = {1, -2}};
  const auto smooth = warped(image, affine_of(all, centre), 0, true).bytes, expected = bytes_of(torch_affine_smooth);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(int{smooth[i]} - int{expected[i]}) <= 1);
  const std::vector<double> matrix{1.1145310304473592, -0.7261628687048828, 2.4145485651964496,
                                   0.5926066607682476, 1.0158272998002293,  -4.11369156218944};
  for (std::size_t i = 0; i < matrix.size(); ++i) CHECK(affine_of(all, centre).m[i] == Approx(matrix[i]).margin(1e-12));
  const auto back = affine_of(all, centre).inverse()(affine_of(all, centre)({1, 2}));
  CHECK(back.x == Approx(1));
  CHECK(back.y == Approx(2));
}

/// The planes of pattern(2, 4, 3, 5).
std::vector<float> small_planes() {
  const auto image = pattern(2, 4, 3, 5);
  std::vector<float> planes(24);
  for (std::size_t i = 0; i < 24; ++i) planes[i % 3 * 8 + i / 3] = static_cast<float>(image.bytes[i]) / 255.0F;
  return planes;
}

void check_planes(const std::vector<float>& planes, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(planes[i] == Approx(expected[i]).margin(4e-4));
}

TEST_CASE("image changes: brightness, contrast, saturation and hue are torchvision's") {
  auto planes = small_planes();
  change_brightness(planes, 1.4);
  check_planes(planes, {0.02745F, 0.23059F, 0.43373F, 0.63686F, 0.35137F, 0.61490F, 0.87843F, 1.00000F,
                        0.48314F, 0.68627F, 0.88941F, 1.00000F, 0.80706F, 1.00000F, 1.00000F, 0.19216F,
                        0.93882F, 1.00000F, 1.00000F, 0.14275F, 1.00000F, 0.12078F, 0.38431F, 0.64784F});
  planes = small_planes();
  change_contrast(planes, 3, 0.7);
  check_planes(planes, {0.16962F, 0.27119F, 0.37276F, 0.47432F, 0.33158F, 0.46334F, 0.59511F, 0.72687F,
                        0.39746F, 0.49903F, 0.60060F, 0.70217F, 0.55942F, 0.69119F, 0.82295F, 0.25197F,
                        0.62530F, 0.72687F, 0.82844F, 0.22727F, 0.78727F, 0.21629F, 0.34805F, 0.47981F});
  planes = small_planes();
  change_saturation(planes, 3, 1.6);
  check_planes(planes, {0.00000F, 0.00555F, 0.15066F, 0.36443F, 0.09183F, 0.34875F, 0.53699F, 1.00000F,
                        0.38123F, 0.52634F, 0.67144F, 0.88522F, 0.61262F, 0.86953F, 1.00000F, 0.00000F,
                        0.90201F, 1.00000F, 1.00000F, 0.00000F, 1.00000F, 0.00000F, 0.00000F, 0.51411F});
  planes = small_planes();
  change_hue(planes, 3, 0.1);
  check_planes(planes, {0.08471F, 0.22980F, 0.37490F, 0.10196F, 0.31608F, 0.08627F, 0.27451F, 0.81569F,
                        0.01961F, 0.16471F, 0.30980F, 0.78039F, 0.25098F, 0.76471F, 0.95294F, 0.21882F,
                        0.67059F, 0.81569F, 0.96078F, 0.15608F, 0.90196F, 0.14039F, 0.32863F, 0.13725F});
  planes = small_planes();
  change_hue(planes, 3, -0.35);
  check_planes(planes, {0.41020F, 0.55529F, 0.70039F, 0.78039F, 0.64157F, 0.76471F, 0.95294F, 0.13725F,
                        0.67059F, 0.81569F, 0.96078F, 0.10196F, 0.90196F, 0.08627F, 0.27451F, 0.53059F,
                        0.01961F, 0.16471F, 0.30980F, 0.52275F, 0.25098F, 0.50706F, 0.69529F, 0.81569F});
  planes = small_planes();
  change_hue(planes, 1, 0.1);
  change_saturation(planes, 1, 0.1);
  CHECK(planes == small_planes());
}

TEST_CASE("image changes: elastic displacements are smoothed noise") {
  constexpr std::int64_t height = 9, width = 12;
  constexpr double sigma = 1.5, strength = 40;
  SampleRandom random(1, 2, 3), same(1, 2, 3);
  const auto found = elastic(height, width, strength, sigma, random);
  // The same noise, smoothed in two dimensions at once.
  const auto reflected = [](std::int64_t at, std::int64_t extent) {
    if (at < 0) at = -at;
    return at >= extent ? 2 * (extent - 1) - at : at;
  };
  constexpr std::int64_t reach = 6;
  for (const auto* values : {&found.x, &found.y}) {
    std::vector<double> noise(height * width);
    for (auto& value : noise) value = static_cast<double>(static_cast<float>(uniform(same, -1, 1)));
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        double sum = 0, weights = 0;
        for (std::int64_t down = -reach; down <= reach; ++down)
          for (std::int64_t right = -reach; right <= reach; ++right) {
            const double weight = std::exp(-static_cast<double>(down * down + right * right) / (2 * sigma * sigma));
            weights += weight;
            sum += weight * noise[static_cast<std::size_t>(reflected(y + down, height) * width + reflected(x + right, width))];
          }
        CHECK((*values)[static_cast<std::size_t>(y * width + x)] == Approx(sum / weights * strength / 2).margin(1e-4));
      }
  }
  // A displacement of one pixel to the right everywhere takes the right neighbour.
  const Displacements right{.height = 2, .width = 3, .x = std::vector<float>(6, 1), .y = std::vector<float>(6, 0)};
  const Pixels image{.height = 2, .width = 3, .channels = 1, .bytes = {1, 2, 3, 4, 5, 6}};
  CHECK(warped(image, right, 9, true).bytes == Bytes{2, 3, 9, 5, 6, 9});
}

TEST_CASE("image changes: outlines follow the pixels") {
  // A dark image with one light square, whose corners are the outline.
  Canvas canvas{.image = {.height = 60, .width = 80, .channels = 1, .bytes = Bytes(4800)}};
  for (std::int64_t y = 20; y < 40; ++y)
    for (std::int64_t x = 30; x < 50; ++x) canvas.image.bytes[static_cast<std::size_t>(y * 80 + x)] = 255;
  canvas.mask = canvas.image;
  canvas.outlines = {{}};
  for (int i = 0; i <= 20; ++i)
    for (const Point point : {Point{30.0 + i, 20}, {30.0 + i, 40}, {30, 20.0 + i}, {50, 20.0 + i}})
      canvas.outlines[0].push_back(point);
  const auto compare = [&] {
    double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
    for (const auto& point : canvas.outlines[0]) {
      left = std::min(left, point.x);
      right = std::max(right, point.x);
      top = std::min(top, point.y);
      bottom = std::max(bottom, point.y);
    }
    std::int64_t first_x = 1000, last_x = -1, first_y = 1000, last_y = -1;
    for (std::int64_t y = 0; y < canvas.image.height; ++y)
      for (std::int64_t x = 0; x < canvas.image.width; ++x)
        if (canvas.image.bytes[static_cast<std::size_t>(y * canvas.image.width + x)] > 127) {
          first_x = std::min(first_x, x);
          last_x = std::max(last_x, x + 1);
          first_y = std::min(first_y, y);
          last_y = std::max(last_y, y + 1);
        }
    CHECK(left == Approx(static_cast<double>(first_x)).margin(1.5));
    CHECK(right == Approx(static_cast<double>(last_x)).margin(1.5));
    CHECK(top == Approx(static_cast<double>(first_y)).margin(1.5));
    CHECK(bottom == Approx(static_cast<double>(last_y)).margin(1.5));
  };
  canvas.fit({.top = 5, .left = 10, .height = 50, .width = 60}, 75, 120);
  compare();
  canvas.flip();
  compare();
  canvas.warp(affine_of({.degrees = 20, .scale = 0.9, .shear_x = 10, .shear_y = 4, .move = {5, -3}}, {60, 37}), true);
  compare();
  SampleRandom random(4, 0, 0);
  canvas.warp(elastic(75, 120, 120, 6, random));
  compare();
  // The mask went where the image did.
  std::int64_t different = 0;
  for (std::size_t i = 0; i < canvas.mask.bytes.size(); ++i)
    different += (canvas.image.bytes[i] > 127) != (canvas.mask.bytes[i] == 255 && canvas.image.bytes[i] > 60);
  CHECK(different < 120);
}

TEST_CASE("image changes: of samples, by their seed") {
  const Folder folder;
  std::filesystem::create_directories(folder / "a");
  const auto bmp = bytes_of(rgb_bmp);
  folder.write("a/1.bmp", std::string(bmp.begin(), bmp.end()));
  const auto images = image_folder(folder.path(), {.height = 8, .width = 8});
  const std::vector<ImageOptions> all{
      {.height = 8, .width = 8, .translate = 0.3}, {.height = 8, .width = 8, .scale = 0.3},
      {.height = 8, .width = 8, .shear = 30},      {.height = 8, .width = 8, .elastic = 30, .elastic_sigma = 1},
      {.height = 8, .width = 8, .saturation = 1},  {.height = 8, .width = 8, .hue = 0.5},
      {.height = 8, .width = 8, .erase = 1},       {.height = 8, .width = 8, .rand_augment = 2, .magnitude = 20}};
  for (const auto& options : all) {
    const auto changed = images.with(options);
    int different = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto one = changed.get(0, seed)[0];
      CHECK(one.bytes == changed.get(0, seed)[0].bytes);
      different += one.bytes != images.get(0, 0)[0].bytes;
      for (const float value : one.values<float>()) CHECK((value >= 0 && value <= 1));
    }
    CHECK(different >= 10);
    CHECK(changed.fingerprint() != images.fingerprint());
  }
  for (const auto& wrong : {ImageOptions{.translate = 2}, ImageOptions{.scale = 1}, ImageOptions{.shear = 90},
                            ImageOptions{.elastic = -1}, ImageOptions{.elastic_sigma = 0}, ImageOptions{.rand_augment = -1},
                            ImageOptions{.magnitude = 31}, ImageOptions{.hue = 0.6}, ImageOptions{.erase = 1.5}})
    CHECK_THROWS_AS(images.with(wrong), Error);
  SampleRandom random(1, 1, 1);
  for (int i = 0; i < 100; ++i) {
    const auto part = random_part_to_erase({.erase = 1}, random);
    const double share = static_cast<double>(part.height * part.width) / (224 * 224);
    CHECK((share > 0.019 && share < 0.34));
    CHECK((part.top >= 0 && part.left >= 0 && part.top + part.height <= 224 && part.left + part.width <= 224));
  }
}

}  // namespace
}  // namespace clnet::data
