// Every row of matrices {m, n} that begin c_batch elements from one another becomes the bias, for products that are then added.
#include "clnet.clh"

kernel void matmul_bias(IN(bias), OUT(c), const int rows, const int m, const int n, const int c_batch) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column < n && row < rows) STORE(c, row / m * c_batch + row % m * n + column, LOAD(bias, column));
}
