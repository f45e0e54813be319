// refused: discards qualifiers|no viable overloaded|passing .* discards|use of deleted|no match for
#include <clnet/clnet.h>

void set(clnet::Tensor x) { x[0] = clnet::zeros({3}); }
