// Preloaded by `./dev locales` into capo and its tests: the process speaks the locale of the
// environment before main(), as a program that embeds capo may, in C and in C++.
//
// Under de_DE a decimal point is a comma and thousands have dots, under tr_TR an i has a dot in
// upper case: whoever prints or reads by the locale prints and reads otherwise there.

#include <locale>
#include <stdexcept>

namespace {

__attribute__((constructor)) void speak() {
  try {
    std::locale::global(std::locale(""));
  } catch (const std::runtime_error&) {
    // Not there: `./dev locales` has looked before.
  }
}

}  // namespace
