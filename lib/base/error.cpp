#include "clnet/error.h"

namespace clnet {

void Error::place(const std::string& where) {
  if (!placed_) placed_ = std::make_shared<const std::string>("in " + where + ": " + what());
}

}  // namespace clnet
