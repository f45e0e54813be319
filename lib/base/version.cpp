#include "clnet/version.h"

namespace clnet {

std::string_view version() { return CLNET_VERSION; }

}  // namespace clnet
