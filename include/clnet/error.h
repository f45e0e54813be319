// What clnet throws. The text of every error says which operation failed, what it expected and what it got.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "clnet/export.h"

namespace clnet {

/// The base of everything that clnet throws on purpose.
class CLNET_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override { return placed_ ? placed_->c_str() : std::runtime_error::what(); }
  /// Puts "in PLACE: " before the text, unless a place is there already: a module's name in a model.
  void place(const std::string& where);

 private:
  std::shared_ptr<const std::string> placed_;  // copying an exception must not throw
};

/// Shapes that do not fit an operation; both shapes are in the text.
class CLNET_API ShapeError : public Error {
 public:
  using Error::Error;
};

/// A storage type that an operation does not take, or types that do not match.
class CLNET_API DtypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is missing, was lost, ran out of memory or refused a call; OpenCL's error code is in the text by name.
class CLNET_API DeviceError : public Error {
 public:
  using Error::Error;
};

/// A program that the device's compiler refused; the text holds the compiler's log and the numbered source.
class CLNET_API BuildError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, damaged or not of the expected format; the path is in the text.
class CLNET_API FileError : public Error {
 public:
  using Error::Error;
};

/// Something valid that clnet, or this device, cannot do.
class CLNET_API Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace clnet
