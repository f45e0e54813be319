// Every row of a matrix {rows, n} becomes the bias, for a product that is then added to it.
#include "clnet.clh"

kernel void matmul_bias(IN(bias), OUT(c), const int rows, const int n) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column < n && row < rows) STORE(c, row * n + column, LOAD(bias, column));
}
