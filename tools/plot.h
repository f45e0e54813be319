// Line charts as SVG.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace clnet::tools {

struct Point {
  double x = 0, y = 0;
};

struct Series {
  std::string name, color;
  std::vector<Point> points;  ///< in the order of x
  bool markers = false;       ///< a dot at each point
  double width = 2;           ///< of the line, in pixels
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool from_zero = false;                                    ///< the vertical axis starts at 0
  double highest = std::numeric_limits<double>::infinity();  ///< the vertical axis ends at it or before
};

/// Charts side by side under a title.
std::string to_svg(const std::string& title, const std::vector<Chart>& charts);

/// At most `most` points: means of as many neighbours as it takes.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most);

}  // namespace clnet::tools
