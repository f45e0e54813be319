#include "tools/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace clnet::tools {

namespace {

constexpr double chart_width = 520, chart_height = 380, title_height = 44;
constexpr double left = 64, right = 20, top = 40, bottom = 52;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

/// A part of an axis that starts and ends on multiples of `step`, a round number.
struct Axis {
  double low = 0, high = 1, step = 0.2;

  double share(double value) const { return (value - low) / (high - low); }
  int tick_count() const { return static_cast<int>(std::lround((high - low) / step)) + 1; }
  double tick(int index) const { return low + index * step; }
  std::string label(double value) const {
    const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}f}", std::abs(value) < step / 2 ? 0.0 : value, digits);
  }
};

Axis make_axis(double low, double high) {
  if (!(high > low)) {
    const double margin = low == 0 ? 1 : std::abs(low) * 0.01;
    low -= margin;
    high += margin;
  }
  constexpr double wanted_ticks = 6;
  const double rough = (high - low) / wanted_ticks;
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * unit;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= rough) {
      step = factor * unit;
      break;
    }
  }
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
}

/// One chart with its upper left corner at (x, y).
class Drawing {
 public:
  Drawing(const Chart& chart, double x, double y) : chart_(chart), x_(x), y_(y) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double x0 = infinity, x1 = -infinity, y0 = chart.from_zero ? 0 : infinity, y1 = -infinity;
    for (const auto& series : chart.series) {
      for (const auto& point : series.points) {
        x0 = std::min(x0, point.x), x1 = std::max(x1, point.x);
        y0 = std::min(y0, point.y), y1 = std::max(y1, point.y);
      }
    }
    horizontal_ = x1 < x0 ? Axis{} : make_axis(std::min(x0, 0.0), x1);
    vertical_ = y1 < y0 ? Axis{} : make_axis(y0, y1);
    while (vertical_.high > chart.highest && vertical_.tick_count() > 2) vertical_.high -= vertical_.step;
  }

  std::string text() {
    frame();
    for (const auto& series : chart_.series) draw(series);
    legend();
    return std::move(out_);
  }

 private:
  double px(double x) const { return x_ + left + horizontal_.share(x) * (chart_width - left - right); }
  double py(double y) const { return y_ + chart_height - bottom - vertical_.share(y) * (chart_height - top - bottom); }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void label(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)", x, y, anchor, more, escaped(text));
  }

  void frame() {
    const double x0 = px(horizontal_.low), x1 = px(horizontal_.high), y0 = py(vertical_.low), y1 = py(vertical_.high);
    label((x0 + x1) / 2, y_ + 24, "middle", chart_.title, R"( font-weight="bold" font-size="14")");
    for (int i = 0; i < vertical_.tick_count(); ++i) {
      const double value = vertical_.tick(i), y = py(value);
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#e4e4e4"/>)", x0, y, x1, y);
      label(x0 - 8, y + 4, "end", vertical_.label(value));
    }
    for (int i = 0; i < horizontal_.tick_count(); ++i) {
      const double value = horizontal_.tick(i), x = px(value);
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#444"/>)", x, y0, x, y0 + 5);
      label(x, y0 + 19, "middle", horizontal_.label(value));
    }
    add(R"(<path d="M{:.1f},{:.1f} V{:.1f} H{:.1f}" fill="none" stroke="#444"/>)", x0, y1, y0, x1);
    label((x0 + x1) / 2, y0 + 40, "middle", chart_.x_label);
    const double x = x_ + 16, y = (y0 + y1) / 2;
    add(R"svg(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" transform="rotate(-90 {:.1f} {:.1f})">{}</text>)svg", x, y, x, y,
        escaped(chart_.y_label));
  }

  void draw(const Series& series) {
    if (series.points.empty()) return;
    std::string points;
    for (const auto& p : series.points) points += fmt::format("{:.1f},{:.1f} ", px(p.x), py(p.y));
    points.pop_back();
    add(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"/>)", points, series.color,
        series.width);
    if (!series.markers) return;
    for (const auto& p : series.points)
      add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)", px(p.x), py(p.y), series.color);
  }

  /// In the corner where the fewest points are.
  void legend() {
    constexpr double line = 18, width = 150, margin = 10;
    const double height = line * static_cast<double>(chart_.series.size()) + 8;
    const double x1 = px(horizontal_.high) - width - margin, x0 = px(horizontal_.low) + margin;
    const double y0 = y_ + top + 4, y1 = py(vertical_.low) - height - margin;
    double best_x = x1, best_y = y0;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const auto& [x, y] : {std::pair{x1, y0}, {x1, y1}, {x0, y0}, {x0, y1}}) {
      std::size_t covered = 0;
      for (const auto& series : chart_.series)
        for (const auto& p : series.points)
          covered +=
              px(p.x) > x - margin && px(p.x) < x + width + margin && py(p.y) > y - margin && py(p.y) < y + height + margin;
      if (covered < fewest) fewest = covered, best_x = x, best_y = y;
    }
    add(R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" rx="4" fill="white" fill-opacity="0.85" stroke="#ccc"/>)", best_x,
        best_y, width, height);
    double y = best_y + 4 + line / 2;
    for (const auto& series : chart_.series) {
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>)", best_x + 8, y, best_x + 32,
          y, series.color, series.width);
      if (series.markers) add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)", best_x + 20, y, series.color);
      label(best_x + 40, y + 4, "start", series.name);
      y += line;
    }
  }

  const Chart& chart_;
  double x_, y_;
  Axis horizontal_, vertical_;
  std::string out_;
};

}  // namespace

std::string to_svg(const std::string& title, const std::vector<Chart>& charts) {
  const double width = chart_width * static_cast<double>(charts.size()), height = chart_height + title_height;
  std::string result = fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
                                   R"(font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222">
<rect width="{0}" height="{1}" fill="white"/>
<text x="{2}" y="30" text-anchor="middle" font-size="17">{3}</text>
)",
                                   width, height, width / 2, escaped(title));
  for (std::size_t i = 0; i < charts.size(); ++i)
    result += Drawing(charts[i], chart_width * static_cast<double>(i), title_height).text();
  return result + "</svg>\n";
}

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  const std::size_t group = points.size() / std::max<std::size_t>(most, 1) + 1;
  std::vector<Point> result;
  for (std::size_t first = 0; first < points.size(); first += group) {
    const auto count = std::min(group, points.size() - first);
    Point mean;
    for (std::size_t i = first; i < first + count; ++i) mean.x += points[i].x, mean.y += points[i].y;
    result.push_back({mean.x / static_cast<double>(count), mean.y / static_cast<double>(count)});
  }
  return result;
}

}  // namespace clnet::tools
