// Places where collectives of tensors cannot be.
#pragma once

#include <string_view>

namespace clnet::dist {

/// While it lives, collectives of tensors that this thread builds with other ranks are an Error with its text: graphs of several
/// devices of a rank run side by side, so ranks would meet them in different orders.
class NoCollectives {
 public:
  explicit NoCollectives(std::string_view why);
  ~NoCollectives();
  NoCollectives(const NoCollectives&) = delete;
  NoCollectives& operator=(const NoCollectives&) = delete;

 private:
  std::string_view outer_;
};

}  // namespace clnet::dist
