# rules.mk — how what Windows runs is linked: everything inside.
CONVERT_LIBS := $(BUILD)/protobuf-c.o
$(BUILD)/obj/base/memory.o: CPPFLAGS += -DLNT_FREES_ALIGNED
CFLAGS_amx += -include boards/windows/amx.h

$(BUILD)/linnet.exe: $(CLI_OBJ) $(CONVERT_OBJ) $(LIB_OBJ) $(BUILD)/protobuf-c.o
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -static -o $@ $^ $(LDLIBS)

$(BUILD)/liblinnet.dll: $(LIB_OBJ)
	@echo "  LINK    $@"
	$(Q)$(CC) -shared -static $(LDFLAGS) -Wl,--out-implib=$@.a -o $@ $^ $(LDLIBS)
