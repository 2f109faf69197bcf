#include "core/base/assert.h"
#include "core/frameworks/te/predict.h"

namespace capo::te {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Accepted:
      return "";
    case Kind::ValueError:
      return "TE.ValueError";
    case Kind::TypeErrorTe:
      return "TE.TypeError";
    case Kind::RuntimeErrorTe:
      return "TE.RuntimeError";
    case Kind::PyValueError:
      return "py.ValueError";
    case Kind::PyOverflowError:
      return "py.OverflowError";
    case Kind::PyTypeError:
      return "py.TypeError";
    case Kind::PyIndexError:
      return "py.IndexError";
    case Kind::PyKeyError:
      return "py.KeyError";
    case Kind::PyAttributeError:
      return "py.AttributeError";
    case Kind::PyZeroDivisionError:
      return "py.ZeroDivisionError";
    case Kind::PyAssertionError:
      return "py.AssertionError";
    case Kind::TorchRuntimeError:
      return "torch.RuntimeError";
    case Kind::StoreRuntimeError:
      return "store.RuntimeError";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Step step) {
  switch (step) {
    case Step::Parse:
      return "reading the order";
    case Step::Dimensions:
      return "the dimension check";
    case Step::Reuse:
      return "the reuse of static inputs";
    case Step::List:
      return "the list of forwards";
    case Step::WarmUp:
      return "warm-up";
    case Step::Capture:
      return "capture";
  }
  CAPO_UNREACHABLE();
}

}  // namespace capo::te
