#include "lib/nn/here.h"

namespace clnet::nn {

Here& here() {
  thread_local Here now;
  return now;
}

}  // namespace clnet::nn
