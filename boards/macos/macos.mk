# macOS: make SYSTEM=macos objects, by its own clang; elsewhere by one that has its headers: CC="zig cc -target aarch64-macos".
AUDIO :=
