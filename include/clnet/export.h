// Marks the exported symbols of libclnet.so; all others are hidden.
#pragma once

#define CLNET_API __attribute__((visibility("default")))
