// Every way in which a model.json can be wrong: the message, the help and the place.

#include "core/text/model_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

// An input in which << and >> mark the place that the message is about.
struct Bad {
  std::string marked;
  std::string message;
  std::string help;
};

void expect_refused(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.marked);
    const std::size_t begin = bad.marked.find("<<");
    const std::size_t end = bad.marked.find(">>");
    ASSERT_LT(begin, end);
    std::string text = bad.marked;
    text.erase(end, 2).erase(begin, 2);
    const auto model = read_model(text, {});
    ASSERT_FALSE(model);
    const Diagnostic& finding = model.error().finding;
    EXPECT_EQ(finding.message, bad.message);
    EXPECT_EQ(finding.help.text, bad.help);
    EXPECT_EQ(finding.labels.at(0).span.offset, begin);
    EXPECT_EQ(finding.labels.at(0).span.length, end - begin - 2);
    EXPECT_EQ(finding.rule, "I01");
    EXPECT_EQ(model.error().kind, Refusal::Kind::Malformed);
  }
}

TEST(ModelRefusals, OfWhatIsNoJson) {
  expect_refused({
      {R"(<<>>)", "the input is empty", ""},
      {R"(<<  >>)", "the input is empty", ""},
      {R"({"schema":1<<>>)",
       "not valid JSON: syntax error while parsing object - unexpected end of input; expected '}'",
       ""},
      {R"(n<<a>>n)", "not valid JSON: syntax error while parsing value - invalid literal", ""},
      {R"({"transfer":{"latency":<<N>>aN}})",
       "not valid JSON: syntax error while parsing value - invalid literal", ""},
      {R"({"transfer":{"latency":<<1e400>>}})", "this number is beyond the range of a double",
       "an infinite entry of a TE list is written \"Infinity\""},
      {R"({"schema":1,<<"schema">>:1})", "the key `schema` occurs twice in one object",
       "keep one of the two"},
      {R"({"modules":{"a":{},"b":{},<<"a">>:{}}})", "the key `a` occurs twice in one object",
       "keep one of the two"},
      {R"({"modules":{"a":{"cost":{"forward":1,<<"forward">>:2}}}})",
       "the key `forward` occurs twice in one object", "keep one of the two"},
  });
}

TEST(ModelRefusals, OfWhatIsNoModel) {
  expect_refused({
      {R"(<<[1]>>)", "the model is an array, not an object", ""},
      {R"(<<"loop">>)", "the model is a string, not an object", ""},
      {R"({"schema":<<2>>})", "this capo reads schema 1", "write `\"schema\": 1`"},
      {R"({"schema":<<"1">>})", "this capo reads schema 1", "write `\"schema\": 1`"},
      {R"({"schema":<<null>>})", "this capo reads schema 1", "write `\"schema\": 1`"},
      {R"({<<"toplogy">>:"loop"})", "unknown key `toplogy`", "did you mean `topology`?"},
      {R"({<<"ranks">>:2})", "unknown key `ranks`", "docs/schema/model.schema.json lists the keys"},
      {R"({<<"transferss">>:"buffered"})", "unknown key `transferss`", "did you mean `transfers`?"},
  });
}

TEST(ModelRefusals, OfTopologies) {
  expect_refused({
      {R"({"topology":<<"lop">>})",
       "`topology` is one of independent, chain, loop, v, bidirectional", "did you mean `loop`?"},
      {R"({"topology":<<"custom">>})",
       "`topology` is one of independent, chain, loop, v, bidirectional",
       "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`"},
      {R"({"topology":<<7>>})", "`topology` is one of independent, chain, loop, v, bidirectional",
       "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`"},
      {R"({"topology":<<null>>})",
       "`topology` is one of independent, chain, loop, v, bidirectional",
       "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`"},
      {R"({"topology":<<[[0],[1]]>>})",
       "`topology` is one of independent, chain, loop, v, bidirectional",
       "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`"},
      {R"({"topology":<<{}>>})", "the topology has no `stages`", ""},
      {R"({"topology":{"stages":[[0]],<<"schema">>:1}})", "unknown key `schema`",
       "docs/schema/model.schema.json lists the keys"},
      {R"({"topology":{<<"stage">>:[[0]]}})", "unknown key `stage`", "did you mean `stages`?"},
      {R"({"topology":{"stages":<<{}>>}})",
       "`stages` is an object, not an array with the stages of each rank", ""},
      {R"({"topology":{"stages":<<[]>>}})", "a topology has at least one stage", ""},
      {R"({"topology":{"stages":<<[[],[]]>>}})", "a topology has at least one stage", ""},
      {R"({"topology":{"stages":[<<0>>,1]}})",
       "a rank of `stages` is a number, not an array of whole numbers", ""},
      {R"({"topology":{"stages":[[<<"0">>]]}})", "a stage is a string, not a whole number", ""},
      {R"({"topology":{"stages":[[<<0.0>>]]}})", "a stage is a float, not a whole number", ""},
      {R"({"topology":{"stages":[[0],[<<-1>>]]}})", "a stage must be at least 0", ""},
      {R"({"topology":{"stages":[[0,1],[<<1>>]]}})", "stage 1 stands twice",
       "a stage is one chunk of one rank"},
      {R"({"topology":{"stages":[[0],[<<2>>]]}})", "stage 2 is here, but stage 1 is on no rank",
       "stages are numbered from 0 without gaps"},
      {R"({"topology":{"stages":[[<<1>>],[2]]}})", "stage 1 is here, but stage 0 is on no rank",
       "stages are numbered from 0 without gaps"},
  });
}

TEST(ModelRefusals, OfEnvironments) {
  expect_refused({
      {R"({"communicators":<<"per-rnk">>})",
       "`communicators` is one of per-rank, per-pair, per-edge, per-direction, lazy-hybrid",
       "did you mean `per-rank`?"},
      {R"({"communicators":<<true>>})",
       "`communicators` is one of per-rank, per-pair, per-edge, per-direction, lazy-hybrid", ""},
      {R"({"transfers":<<"Buffered">>})",
       "`transfers` is one of rendezvous, buffered, buffered:BYTES", "did you mean `buffered`?"},
      {R"({"transfers":<<"buffered:-1">>})",
       "`transfers` is one of rendezvous, buffered, buffered:BYTES", "did you mean `buffered`?"},
      {R"({"transfers":<<2>>})", "`transfers` is one of rendezvous, buffered, buffered:BYTES", ""},
      {R"({"p2p":<<"bach">>})", "`p2p` is one of batch, overlap, flush", "did you mean `batch`?"},
      {R"({"p2p":<<["batch"]>>})", "`p2p` is one of batch, overlap, flush", ""},
      {R"({"ep_overlap":<<1>>})", "`ep_overlap` is a number, not a boolean", ""},
      {R"({"ep_overlap":<<"true">>})", "`ep_overlap` is a string, not a boolean", ""},
  });
}

constexpr const char* kNesting =
    "a name is every layer, `[...]` the layers of every chunk, `[[...]]` the chunks of every rank, "
    "`[[[...]]]` the ranks";

TEST(ModelRefusals, OfLayers) {
  expect_refused({
      {R"({"layers":<<"attn">>})", "there is no module `attn`", "`modules` names them"},
      {R"({"modules":{"attn":{}},"layers":<<"atn">>})", "there is no module `atn`",
       "did you mean `attn`?"},
      {R"({"modules":{"a":{}},"layers":["a",<<"b">>]})", "there is no module `b`",
       "did you mean `a`?"},
      {R"({"modules":{"a":{}},"layers":<<[]>>})", "`layers` names no module", kNesting},
      {R"({"modules":{"a":{}},"layers":<<[[[]],[]]>>})", "`layers` names no module", kNesting},
      {R"({"modules":{"a":{}},"layers":["a",<<["a"]>>]})",
       "a layer is an array, not the name of a module", kNesting},
      {R"({"modules":{"a":{}},"layers":[["a"],<<"a">>]})",
       "a chunk is a string, not an array of layers", kNesting},
      {R"({"modules":{"a":{}},"layers":[["a"],<<[]>>]})", "a chunk has at least one layer", ""},
      {R"({"modules":{"a":{}},"layers":[[["a"]],[<<[]>>]]})", "a chunk has at least one layer", ""},
      {R"({"modules":{"a":{}},"layers":[[["a"]],<<"a">>]})",
       "a rank is a string, not an array of chunks", kNesting},
      {R"({"modules":{"a":{}},"layers":[[[<<["a"]>>]]]})",
       "a layer is an array, not the name of a module", kNesting},
      {R"({"modules":{"a":{}},"layers":[<<0>>]})", "a layer is a number, not the name of a module",
       kNesting},
      {R"({"modules":{"a":{}},"layers":<<{"0":"a"}>>})",
       "a layer is an object, not the name of a module", kNesting},
      {R"({"modules":{"a":{}},"layers":<<null>>})", "a layer is null, not the name of a module",
       kNesting},
  });
}

TEST(ModelRefusals, OfSeveralModulesWithoutLayers) {
  expect_refused({{R"({"modules":<<{"a":{},"b":{}}>>,"plan":"te"})",
                   "there are 2 modules here, and no `layers` say which layer is which",
                   "`\"layers\": \"a\"` makes each layer a `a`; lists tell them apart"}});
}

TEST(ModelRefusals, OfModules) {
  expect_refused({
      {R"({"modules":<<[]>>})", "`modules` is an array, not an object of modules by name", ""},
      {R"({"modules":{<<"">>:{}}})", "the name of a module is empty", ""},
      {R"({"modules":{"a":<<"linear">>}})", "a module is a string, not an object", ""},
      {R"({"modules":{"a":{<<"knd">>:"linear"}}})", "unknown key `knd`", "did you mean `kind`?"},
      {R"({"modules":{"a":{"kind":<<"grouped-linar">>}}})",
       "`kind` is one of linear, grouped-linear, layernorm-linear, layernorm-mlp, grouped-mlp, "
       "attention, transformer-layer, moe-layer, grouped-linear-op, basic-linear-op",
       "did you mean `grouped-linear`?"},
      {R"({"modules":{"a":{"kind":<<0>>}}})",
       "`kind` is one of linear, grouped-linear, layernorm-linear, layernorm-mlp, grouped-mlp, "
       "attention, transformer-layer, moe-layer, grouped-linear-op, basic-linear-op",
       ""},
      {R"({"modules":{"a":{"dtype":<<"fp4">>}}})", "`dtype` is one of bf16, fp16, fp32", ""},
      {R"({"modules":{"a":{"recipe":"none","dtype":<<"fp8">>}}})",
       "`dtype` fp8 says that operands are quantized, and `recipe` none not",
       "write the type of tensors between modules, `\"dtype\": \"bf16\"`"},
      {R"({"modules":{"a":{"recipe":<<"mxfp4">>}}})",
       "`recipe` is one of none, delayed, current, block, mxfp8, nvfp4", "did you mean `mxfp8`?"},
      {R"({"modules":{"a":{"shape":<<[1,2]>>}}})", "`shape` is an array, not an object", ""},
      {R"({"modules":{"a":{"shape":{<<"token">>:1}}}})", "unknown key `token`",
       "did you mean `tokens`?"},
      {R"({"modules":{"a":{"shape":{"tokens":<<0>>}}}})", "`shape.tokens` must be at least 1", ""},
      {R"({"modules":{"a":{"shape":{"hidden":<<-5>>}}}})", "`shape.hidden` must be at least 1", ""},
      {R"({"modules":{"a":{"shape":{"ffn":<<2147483648>>}}}})",
       "`shape.ffn` must be at most 2147483647", ""},
      {R"({"modules":{"a":{"shape":{"groups":<<8.0>>}}}})",
       "`shape.groups` is a float, not a whole number", ""},
      {R"({"modules":{"a":{"shape":{"top_k":<<0>>}}}})", "`shape.top_k` must be at least 1", ""},
      {R"({"modules":{"a":{"shape":{"heads":<<0>>}}}})", "`shape.heads` must be at least 1", ""},
      {R"({"modules":{"a":{"shape":{"kv_heads":<<0>>}}}})", "`shape.kv_heads` must be at least 1",
       ""},
      {R"({"modules":{"a":{"shape":{"head_dim":<<0>>}}}})", "`shape.head_dim` must be at least 1",
       ""},
      {R"({"modules":{"a":{"shape":{"sequence":<<0>>}}}})", "`shape.sequence` must be at least 1",
       ""},
      {R"({"modules":{"a":{"shape":{"kv_heads":<<4>>,"heads":6}}}})",
       "`shape.kv_heads` is 4, and `shape.heads`, 6, is no multiple of it", ""},
      {R"({"modules":{"a":{"shape":{"tokens":12,"sequence":<<8>>}}}})",
       "`shape.sequence` is 8, and `shape.tokens`, 12, is no multiple of it", ""},
      {R"({"modules":{"a":{"flags":{"delay_wgrad":<<1>>}}}})",
       "`flags.delay_wgrad` is a number, not a boolean", ""},
      {R"({"modules":{"a":{"flags":{<<"delay-wgrad">>:true}}}})", "unknown key `delay-wgrad`",
       "did you mean `delay_wgrad`?"},
      {R"({"modules":{"a":{"flags":<<true>>}}})", "`flags` is a boolean, not an object", ""},
      {R"({"modules":{"a":{"bytes":{"input":<<-1>>}}}})", "`bytes.input` must be at least 0", ""},
      {R"({"modules":{"a":{"bytes":{"output":<<1.5>>}}}})",
       "`bytes.output` is a float, not a whole number", ""},
      {R"({"modules":{"a":{"bytes":{"weight":<<9007199254740992>>}}}})",
       "`bytes.weight` must be at most 9007199254740991", ""},
      {R"({"modules":{"a":{"bytes":{"weight":<<99999999999999999999>>}}}})",
       "`bytes.weight` must be at most 9007199254740991", ""},
      {R"({"modules":{"a":{"bytes":{<<"operand">>:1}}}})", "unknown key `operand`",
       "did you mean `operands`?"},
      {R"({"modules":{"a":{"cost":{"forward":<<-0.5>>}}}})", "`cost.forward` must be at least 0",
       ""},
      {R"({"modules":{"a":{"cost":{"backward":<<"3">>}}}})",
       "`cost.backward` is a string, not a number", ""},
      {R"({"modules":{"a":{"cost":{"weight":<<1e13>>}}}})",
       "`cost.weight` must be at most 1000000000000", ""},
      {R"({"modules":{"a":{"cost":{<<"wgrad">>:1}}}})", "unknown key `wgrad`",
       "docs/schema/model.schema.json lists the keys"},
      {R"({"modules":{"a":{"cost":{"combine":<<null>>}}}})", "`cost.combine` is null, not a number",
       ""},
      {R"({"modules":{"a":{"cost":<<12>>}}})", "`cost` is a number, not an object", ""},
  });
}

TEST(ModelRefusals, OfConfigurations) {
  expect_refused({
      {R"({"configuration":<<[]>>})", "`configuration` is an array, not an object", ""},
      {R"({"configuration":{<<"hiden">>:8}})", "unknown key `hiden`", "did you mean `hidden`?"},
      {R"({"configuration":{"hidden":<<0>>}})", "`configuration.hidden` must be at least 1", ""},
      {R"({"configuration":{"shared_experts":<<-1>>}})",
       "`configuration.shared_experts` must be at least 0", ""},
      {R"({"configuration":{"vocabulary":<<2147483648>>}})",
       "`configuration.vocabulary` must be at most 2147483647", ""},
      {R"({"configuration":{"qk_norm":<<1>>}})",
       "`configuration.qk_norm` is a number, not a boolean", ""},
      {R"({"configuration":{"capacity_factor":<<0.5>>}})",
       "`configuration.capacity_factor` must be at least 1", ""},
      {R"({"configuration":{"dtype":<<"fp4">>}})",
       "`configuration.dtype` is one of bf16, fp16, fp32", ""},
      {R"({"configuration":{"recompute":<<"selective">>}})",
       "`configuration.recompute` is one of none, full", ""},
      {R"({"configuration":{"latent":<<{"q_rank":1}>>}})",
       "`configuration.latent` has no `kv_rank`", ""},
      {R"({"configuration":{"latent":{"q_rank":<<0>>}}})", "`latent.q_rank` must be at least 1",
       ""},
      {R"({"configuration":{"experts":<<256>>,"expert_parallel":7}})",
       "`configuration.experts` is 256, no multiple of `expert_parallel`, 7", ""},
      {R"({"modules":{"a":{"mlp":<<"moe">>}}})", "`mlp` is one of dense, experts", ""},
  });
}

TEST(ModelRefusals, OfGroups) {
  expect_refused({
      {R"({"groups":<<{}>>})", "`groups` is an object, not an array of objects", ""},
      {R"({"groups":[<<"ep">>]})", "a group is a string, not an object", ""},
      {R"({"groups":[<<{"members":[0],"actions":["reduce"]}>>]})", "the group has no `name`", ""},
      {R"({"groups":[<<{"name":"g","actions":["reduce"]}>>]})", "the group has no `members`", ""},
      {R"({"groups":[<<{"name":"g","members":[0]}>>]})", "the group has no `actions`", ""},
      {R"({"groups":[{"name":"g",<<"member">>:[0],"actions":["reduce"]}]})", "unknown key `member`",
       "did you mean `members`?"},
      {R"({"groups":[{"name":<<"">>,"members":[0],"actions":["reduce"]}]})",
       "the `name` of a group is empty", ""},
      {R"({"groups":[{"name":<<3>>,"members":[0],"actions":["reduce"]}]})",
       "the `name` of a group is a number, not a string", ""},
      {R"({"groups":[{"name":"g","members":<<0>>,"actions":["reduce"]}]})",
       "`members` is a number, not an array of ranks", ""},
      {R"({"groups":[{"name":"g","members":<<[]>>,"actions":["reduce"]}]})",
       "a group has at least one member", ""},
      {R"({"groups":[{"name":"g","members":[0,1,<<0>>],"actions":["reduce"]}]})",
       "rank 0 is twice in one group", ""},
      {R"({"groups":[{"name":"g","members":[<<-1>>],"actions":["reduce"]}]})",
       "a member must be at least 0", ""},
      {R"({"groups":[{"name":"g","members":[<<0.5>>],"actions":["reduce"]}]})",
       "a member is a float, not a whole number", ""},
      {R"({"groups":[{"name":"g","members":[<<"0">>],"actions":["reduce"]}]})",
       "a member is a string, not a whole number", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":<<"reduce">>}]})",
       "`actions` is a string, not an array of strings", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":<<[]>>}]})",
       "a group performs at least one action", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":[<<"dispatch">>]}]})",
       "an action of a group is one of dispatch-F, combine-F, dispatch-B, combine-B, unshard, "
       "reshard, reduce",
       "did you mean `dispatch-F`?"},
      {R"({"groups":[{"name":"g","members":[0],"actions":[<<"send-F">>]}]})",
       "an action of a group is one of dispatch-F, combine-F, dispatch-B, combine-B, unshard, "
       "reshard, reduce",
       ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":[<<1>>]}]})",
       "an action of a group is one of dispatch-F, combine-F, dispatch-B, combine-B, unshard, "
       "reshard, reduce",
       ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce",<<"reduce">>]}]})",
       "`reduce` is twice in one group", ""},
      {R"({"groups":[{"name":"g","members":[0,1],"actions":["reduce"]},{"name":"h","members":[<<1>>,2],"actions":["unshard","reduce"]}]})",
       "rank 1 performs `reduce` in another group already", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce"],"streams":<<["dp"]>>}]})",
       "`streams` is an array, not an object of names by action", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce"],"streams":{<<"unshard">>:"dp"}}]})",
       "`unshard` is no action of this group", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce"],"streams":{<<"reduc">>:"dp"}}]})",
       "`reduc` is no action of this group", "did you mean `reduce`?"},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce"],"streams":{"reduce":<<7>>}}]})",
       "the name of a stream is a number, not a string", ""},
      {R"({"groups":[{"name":"g","members":[0],"actions":["reduce"],"streams":{"reduce":<<"">>}}]})",
       "the name of a stream is empty", ""},
  });
}

TEST(ModelRefusals, OfPaces) {
  expect_refused({
      {R"({"paces":<<1.5>>})", "`paces` is a float, not an array with a number for each rank", ""},
      {R"({"paces":[1,<<0.05>>]})", "a pace must be at least 0.1", ""},
      {R"({"paces":[<<10.5>>]})", "a pace must be at most 10", ""},
      {R"({"paces":[<<"1">>]})", "a pace is a string, not a number", ""},
  });
}

TEST(ModelRefusals, OfTransferCosts) {
  expect_refused({
      {R"({"transfer":<<4>>})", "`transfer` is a number, not an object", ""},
      {R"({"transfer":{<<"latencies">>:4}})", "unknown key `latencies`", "did you mean `latency`?"},
      {R"({"transfer":{"latency":<<-1>>}})", "`transfer.latency` must be at least 0", ""},
      {R"({"transfer":{"bandwidth":<<0>>}})", "`transfer.bandwidth` must be at least 1e-06", ""},
      {R"({"transfer":{"bandwidth":<<1e-320>>}})", "`transfer.bandwidth` must be at least 1e-06",
       ""},
      {R"({"transfer":{"crowded":<<0.5>>}})", "`transfer.crowded` must be at least 1", ""},
      {R"({"transfer":{"crowded":<<1e7>>}})", "`transfer.crowded` must be at most 1000000", ""},
      {R"({"transfer":{"slowdown":<<0.5>>}})", "`transfer.slowdown` must be at least 1", ""},
      {R"({"transfer":{"bandwidth":<<1e13>>}})",
       "`transfer.bandwidth` must be at most 1000000000000", ""},
      {R"({"transfer":{"bytes":<<-16>>}})", "`transfer.bytes` must be at least 0", ""},
      {R"({"transfer":{"bytes":<<1e3>>}})", "`transfer.bytes` is a float, not a whole number", ""},
  });
}

}  // namespace
}  // namespace capo
