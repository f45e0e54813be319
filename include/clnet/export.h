// Marks what libclnet.so exports; everything else is hidden.
#pragma once

#define CLNET_API __attribute__((visibility("default")))
