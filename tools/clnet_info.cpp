#include "clnet/version.h"
int main() { return clnet::version().empty(); }
