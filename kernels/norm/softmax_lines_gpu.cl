// inner > 1: a line along the axis per work-item, in two passes; neighbours load neighbours.
#include "softmax.clh"
#include "epilogue.clh"
#include "prologue.clh"

kernel void softmax_lines_gpu(IN(x), OUT(y), const int lines, const int axis, const int inner
                              PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * axis * inner + REMAINDER(line, inner);
  float most = -INFINITY, sum = 0, lost = 0;
  for (int begin = 0; begin < axis; begin = BLOCK_END(begin, CLNET_AT_ONCE, axis)) {
#define HAS(k) ((k) < axis - begin)
#define AT(k) (first + (begin + (k)) * inner)
    JOIN_BLOCK(most, sum, lost, HAS, AT);
  }
  const float scale = SCALE(sum);
  for (int i = 0; i < axis; ++i) {
    const int at = first + i * inner;
    STORE(y, at, EPILOGUE(RESULT(LOAD(x, at), most, scale), at, i));
  }
}
