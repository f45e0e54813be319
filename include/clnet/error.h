// Exceptions. Each text names the operation, the expected value and the actual one.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "clnet/export.h"

namespace clnet {

/// The base of all exceptions that clnet throws on purpose.
class CLNET_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override { return placed_ ? placed_->c_str() : std::runtime_error::what(); }
  /// Prefixes the text with "in PLACE: ", where PLACE is a module's name in a model. Does nothing where the text has a place
  /// already.
  void place(const std::string& where);

 private:
  std::shared_ptr<const std::string> placed_;  // shared: copying an exception must not throw
};

/// Shapes that do not fit an operation. The text has both shapes.
class CLNET_API ShapeError : public Error {
 public:
  using Error::Error;
};

/// A dtype that an operation does not accept, or dtypes that do not match.
class CLNET_API DtypeError : public Error {
 public:
  using Error::Error;
};

/// A device that is missing, was lost, ran out of memory or refused a call. The text has the name of OpenCL's error code.
class CLNET_API DeviceError : public Error {
 public:
  using Error::Error;
};

/// A program that the device's compiler refused. The text has the compiler's log and the numbered source.
class CLNET_API BuildError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, damaged or of another format. The text has the path.
class CLNET_API FileError : public Error {
 public:
  using Error::Error;
};

/// A valid request that clnet or this device does not support.
class CLNET_API Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace clnet
