// TransformerEngine's make_graphed_callables with an `_order`, statement by statement.
//
// The member functions of Interpreter are TE's stages in the order in which they run; each walks
// the order as TE's loop does and raises what Python would raise there. So this one place uses C++
// exceptions the way Python uses its own: `raise` ends the run, transformer_engine() catches it.
// Formulas are TE's, also where they look odd: a chunk's k is not held below the number of
// microbatches, and a wgrad is filed under the newest dgrad of its chunk.
//
// Kinds: TE.* is an explicit check, py.* an incidental Python error, torch.* raised by PyTorch,
// store.* an empty WeightGradStore.
//
// Left out, as it cannot raise any more: capturing forwards (warm-up has run the same indices), and
// draining the stores in warm-up (one entry put and one taken at every dgrad).
//
// Tested by tests/testing/oracle/oracle_test.cpp.

#include "testing/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <set>

namespace capo::oracle {
namespace {

struct Raised {
  std::string kind;
};

[[noreturn]] void raise(const char* kind) {
  throw Raised{kind};
}

/// `a // b` of ints: rounds down, also below zero.
long long floor_divide(long long a, long long b) {
  if (b == 0) raise("py.ZeroDivisionError");
  const long long quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// A double that is whole, as an int. Beyond +-4e18 it stays there: no list is that long, so that
/// only "too large" matters, and twice the value still fits.
long long whole(double value) {
  return static_cast<long long>(std::clamp(value, -4e18, 4e18));
}

/// `math.ceil(c)`
long long ceiling(Number c) {
  if (std::isnan(c.value)) raise("py.ValueError");
  if (std::isinf(c.value)) raise("py.OverflowError");
  return whole(std::ceil(c.value));
}

/// `ceil(c) != c`
bool fractional(Number c) {
  return std::ceil(c.value) != c.value;
}

/// A value computed from c, used as a list index: a float is refused even when it is whole.
long long list_index(Number c, double value) {
  if (c.floating || fractional(c)) raise("py.TypeError");
  return whole(value);
}

/// `list[index]` of a list of which only the length is known. -1 is the last element.
void require_item(long long size, long long index) {
  if (index < -size || index >= size) raise("py.IndexError");
}

/// `list[index]`
template <class T>
T& item(std::vector<T>& list, long long index) {
  const auto size = static_cast<long long>(list.size());
  require_item(size, index);
  return list[static_cast<std::size_t>(index < 0 ? index + size : index)];
}

/// `dict[key]`
template <class T>
T& value_at(std::map<long long, T>& dict, long long key) {
  const auto found = dict.find(key);
  if (found == dict.end()) raise("py.KeyError");
  return found->second;
}

class Interpreter {
 public:
  explicit Interpreter(const Question& question) : question_(question), order_(question.order) {}

  TeAnswer run() {
    try {
      parse();
      set_dimensions();
      if (question_.reuse) share_sample_arguments();
      list_forwards();
      warm_up();
      capture();
    } catch (const Raised& raised) {
      return {.accepts = false, .kind = raised.kind, .position = position_};
    }
    return {.accepts = true, .kind = "", .position = -1};
  }

 private:
  /// `for c in order`, remembering which entry is being processed.
  template <class Body>
  void for_each_entry(Body body) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_ = static_cast<int>(i);
      body(order_[i]);
    }
    position_ = -1;
  }

  /// Tells fractional entries from the others, W, and finds max(W): the first one of the largest.
  void parse() {
    for_each_entry([&](Number c) {
      ceiling(c);
      if (fractional(c)) {
        any_fractional_ = true;
        return;
      }
      if (entries_ == 0 || c.value > largest_.value) largest_ = c;
      ++entries_;
    });
    if (entries_ == 0) raise("py.ValueError");
  }

  /// Chunks, microbatches, layers, and the numbers of callables and sample arguments.
  void set_dimensions() {
    chunks_ = whole(largest_.value);
    microbatches_ = floor_divide(floor_divide(entries_, chunks_), 2);
    if (chunks_ * microbatches_ * 2 != entries_) raise("TE.ValueError");
    if (any_fractional_) require_one_layer_per_chunk();

    const std::vector<long long>& given = question_.layers.values;
    if (question_.layers.form == Layers::None) {
      const long long samples = chunks_ > 0 ? chunks_ * microbatches_ : 0;
      if (samples * 2 < entries_ || samples * 2 % entries_ != 0) raise("TE.ValueError");
      if (largest_.floating) raise("py.TypeError");  // list * float
      layers_.assign(static_cast<std::size_t>(chunks_),
                     floor_divide(floor_divide(samples, chunks_), microbatches_));
    } else if (question_.layers.form == Layers::Int) {
      if (largest_.floating) raise("py.TypeError");  // list * float
      layers_.assign(static_cast<std::size_t>(std::max(chunks_, 0LL)), given.at(0));
    } else {
      if (static_cast<long long>(given.size()) != chunks_) raise("TE.ValueError");
      layers_ = given;
    }

    long long total = 0;
    for (const long long layers : layers_) total += layers;
    if (total < 0) raise("TE.ValueError");  // nobody can pass that many callables
    callables_ = total;
    sample_args_ = total * microbatches_;

    if (largest_.floating) raise("py.TypeError");  // range(float)
    prefix_ = {0};
    for (const long long layers : layers_) prefix_.push_back(prefix_.back() + layers);
  }

  void require_one_layer_per_chunk() const {
    if (question_.layers.form == Layers::None) raise("TE.ValueError");
    if (question_.layers.form == Layers::Int) raise("py.TypeError");  // for n in <int>
    for (const long long layers : question_.layers.values) {
      if (layers != 1) raise("TE.ValueError");
    }
  }

  /// Chunk-major, then microbatch k, then layer.
  long long graph_index(long long m, long long k, long long l) {
    return item(prefix_, m) * microbatches_ + k * item(layers_, m) + l;
  }

  /// The reuse pre-pass. A backward hands back at most what its chunk's queue holds, and taking
  /// over what was handed back cannot raise: all that matters of a queue is that it exists.
  void share_sample_arguments() {
    std::vector<long long> forward_count(layers_.size(), 0);
    std::set<long long> has_queue;
    for_each_entry([&](Number c) {
      const long long m = std::abs(ceiling(c)) - 1;
      if (c.value > 0) {
        const long long start = graph_index(m, item(forward_count, m), 0);
        for (long long l = 0; l < item(layers_, m); ++l) require_item(sample_args_, start + l);
        has_queue.insert(m);
        ++item(forward_count, m);
      } else if (!fractional(c) && !has_queue.contains(m)) {
        raise("py.KeyError");
      }
    });
  }

  /// The list of graphs to warm up: in total as many as sample arguments, and no index twice. Which
  /// chunk an index came from is not asked; that is where the false accepts come from.
  void list_forwards() {
    std::vector<long long> forward_count(layers_.size(), 0);
    std::vector<long long> listed;
    for_each_entry([&](Number c) {
      if (c.value <= 0) return;
      const long long m = list_index(c, c.value - 1);
      for (long long l = 0; l < item(layers_, m); ++l) {
        listed.push_back(graph_index(m, item(forward_count, m), l));
      }
      ++item(forward_count, m);
    });
    if (static_cast<long long>(listed.size()) != sample_args_) raise("TE.ValueError");
    if (std::set<long long>(listed.begin(), listed.end()).size() != listed.size()) {
      raise("TE.RuntimeError");
    }
  }

  /// One eager pass over forwards and dgrads; wgrad entries are skipped.
  void warm_up() {
    std::vector<long long> forward_count(layers_.size(), 0);
    std::vector<long long> dgrad_count(layers_.size(), 0);
    for_each_entry([&](Number c) {
      if (c.value > 0) {
        const long long m = list_index(c, c.value - 1);
        for (long long l = 0; l < item(layers_, m); ++l) {
          const long long graph = graph_index(m, item(forward_count, m), l);
          require_item(sample_args_, graph);
          module_of_[graph] = item(prefix_, m) + l;
        }
        ++item(forward_count, m);
      } else if (!fractional(c)) {
        const long long m = list_index(c, -c.value - 1);
        for (long long l = item(layers_, m) - 1; l >= 0; --l) {
          require_item(callables_, item(prefix_, m) + l);
          const long long graph = graph_index(m, item(dgrad_count, m), l);
          const long long module = value_at(module_of_, graph);
          if (needs_wgrad_.contains(graph))  // its state is gone
            raise(question_.pops_outputs ? "py.KeyError" : "py.AttributeError");
          needs_wgrad_[graph] = delays_wgrad(module);
        }
        ++item(dgrad_count, m);
      }
    });
  }

  /// Whether the chunk that this callable belongs to delays its wgrads.
  bool delays_wgrad(long long module) const {
    std::size_t chunk = 0;
    while (prefix_[chunk + 1] <= module) ++chunk;
    return chunk < question_.need_wgrad.size() && question_.need_wgrad[chunk];
  }

  void capture() {
    std::vector<long long> dgrad_count(layers_.size(), 0);
    for_each_entry([&](Number c) {
      if (c.value > 0) return;
      if (fractional(c)) {
        capture_wgrad(c, dgrad_count);
      } else {
        capture_dgrads(c, dgrad_count);
      }
    });
  }

  void capture_dgrads(Number c, std::vector<long long>& dgrad_count) {
    const long long m = list_index(c, -c.value - 1);
    for (long long l = item(layers_, m) - 1; l >= 0; --l) {
      const long long graph = graph_index(m, item(dgrad_count, m), l);
      if (!value_at(needs_wgrad_, graph)) continue;
      require_as_many_wgrads(c.value);
      ++stored_[value_at(module_of_, graph)];
    }
    ++item(dgrad_count, m);
  }

  /// From this dgrad on, the wgrads of the chunk catch up with its dgrads somewhere; the dgrads
  /// counted until then are cleared and do not look again.
  void require_as_many_wgrads(double dgrad) {
    const auto here = static_cast<std::size_t>(position_);
    if (cleared_.contains(here)) return;
    std::set<std::size_t> dgrads = {here};
    std::size_t wgrads = 0;
    for (std::size_t i = here + 1; i < order_.size(); ++i) {
      if (order_[i].value > 0) continue;
      if (order_[i].value == dgrad) dgrads.insert(i);
      if (order_[i].value + 0.5 == dgrad) ++wgrads;
      if (wgrads > dgrads.size()) raise("TE.RuntimeError");
      if (wgrads == dgrads.size()) {
        cleared_.insert(dgrads.begin(), dgrads.end());
        return;
      }
    }
    raise("TE.RuntimeError");
  }

  /// One layer per chunk here, so l = 0. The index is that of the newest dgrad of the chunk; before
  /// its first dgrad, the last graph of the chunk before it, or -1.
  void capture_wgrad(Number c, std::vector<long long>& dgrad_count) {
    const long long m = -ceiling(c) - 1;
    const long long graph = graph_index(m, item(dgrad_count, m) - 1, 0);
    if (std::ceil(c.value) - c.value != 0.5) raise("TE.ValueError");
    if (!value_at(needs_wgrad_, graph)) raise("TE.RuntimeError");
    if (!captured_wgrads_.insert(graph).second) raise("torch.RuntimeError");

    long long& stored = stored_[value_at(module_of_, graph)];
    if (stored > 0) {
      --stored;
    } else if (!question_.silent_store) {
      raise("store.RuntimeError");
    }
  }

  const Question& question_;          // owned by the caller of transformer_engine()
  const std::vector<Number>& order_;  // question_.order
  int position_ = -1;                 // the entry being processed; -1 between the walks

  bool any_fractional_ = false;
  long long entries_ = 0;          // len(W)
  Number largest_;                 // max(W)
  long long chunks_ = 0;           // max(W) as an int; below zero where all of W is
  long long microbatches_ = 0;     // from the totals, never counted per chunk
  std::vector<long long> layers_;  // layers of each chunk
  std::vector<long long> prefix_;  // layers before each chunk, and at the end all of them
  long long callables_ = 0;        // len(callables)
  long long sample_args_ = 0;      // len(sample_args)

  std::map<long long, long long> module_of_;  // graph -> callable that ran forward there
  std::map<long long, bool> needs_wgrad_;  // graph -> that callable delays wgrad; set by its dgrad
  std::map<long long, long long> stored_;  // callable -> entries in its WeightGradStore
  std::set<std::size_t> cleared_;          // positions of dgrads known to have their wgrad
  std::set<long long> captured_wgrads_;    // graphs whose wgrad is captured
};

}  // namespace

TeAnswer transformer_engine(const Question& question) {
  return Interpreter(question).run();
}

}  // namespace capo::oracle
