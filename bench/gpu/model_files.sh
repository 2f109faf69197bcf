# Sourced by scripts that measure modules: model() writes into their $folder.

# model NAME KIND TOKENS HIDDEN FFN GROUPS: writes NAME.json; GROUPS is empty where there are none.
model() {
  local groups=${6:+", \"groups\": $6"} splits=${6:+"\"splits\": \"device\","}
  cat >"$folder/$1.json" <<JSON
{"schema": 1, "modules": {"module": {"kind": "$2", "dtype": "bf16",
  "shape": {"tokens": $3, "hidden": $4, "ffn": $5$groups}, $splits
  "flags": {"fuse_wgrad_accumulation": true, "grad_added_to_main_grad": true}}}, "layers": "module"}
JSON
}
