// Whether a text for a person is coloured with escape sequences, as terminals show it.

#pragma once

namespace capo {

enum class Colour { Off, On };

}  // namespace capo
