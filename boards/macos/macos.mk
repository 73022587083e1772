# macOS: make SYSTEM=macos objects, by its own clang; elsewhere by one that has its headers: CC="zig cc -target aarch64-macos".
AUDIO :=
# Names of numbers among doubles are numbers here, too, and text need not end in 0: newer versions of clang want it said.
WARN_SYSTEM := -Wno-unknown-warning-option -Wno-enum-float-conversion -Wno-unterminated-string-initialization
