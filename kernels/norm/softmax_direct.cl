// One line along the axis per work-item, in three passes: the reference solver.
#include "softmax.clh"
#include "epilogue.clh"
#include "prologue.clh"

kernel void softmax_direct(IN(x), OUT(y), const int lines, const int axis, const int inner
                           PROLOGUE_PARAMETERS EPILOGUE_PARAMETERS) {
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  const int first = line / inner * axis * inner + REMAINDER(line, inner);
  float most = -INFINITY, sum = 0;
  for (int i = 0; i < axis; ++i) most = fmax(most, LOAD(x, first + i * inner));
  for (int block = 0; block < axis; block = BLOCK_END(block, CLNET_BLOCK, axis)) {
    const int end = BLOCK_END(block, CLNET_BLOCK, axis);
    float part = 0;
    for (int i = block; i < end; ++i) part += exp(LOAD(x, first + i * inner) - most);
    sum += part;
  }
  const float scale = SCALE(sum);
  for (int i = 0; i < axis; ++i) {
    const int at = first + i * inner;
    STORE(y, at, EPILOGUE(RESULT(LOAD(x, at), most, scale), at, i));
  }
}
