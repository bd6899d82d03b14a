# flowsup: build, check, install.  GNU make; every object goes below $(BUILD).
#
#	make			the programs, in build/bin and build/libexec/flowsup
#	make check		every test; last line `N passed, N failed`
#	make install PREFIX=/usr DESTDIR=/tmp/root
#
# The build tree has the shape of an installed one, so that a program finds its worker and its
# data by the same relative path in both.

VERSION := 0.1.0

PREFIX ?= /usr/local
BINDIR = $(PREFIX)/bin
LIBEXECDIR = $(PREFIX)/libexec/flowsup
DATADIR = $(PREFIX)/share/flowsup
MANDIR = $(PREFIX)/share/man
UNITDIR = $(PREFIX)/lib/systemd/user
DOCDIR = $(PREFIX)/share/doc/flowsup
BASHDIR = $(PREFIX)/share/bash-completion/completions
# Where the shells look of themselves: Debian's zsh in /usr knows its vendors' directory alone, and a fish in
# /usr looks for nothing below /usr/local, but for what the administrator has put into /etc.
ZSHDIR = $(PREFIX)/share/zsh/$(if $(and $(filter /usr,$(PREFIX)),$(wildcard /etc/debian_version)),vendor-completions,site-functions)
FISHDIR = $(if $(filter /usr/local,$(PREFIX)),/etc/fish/completions,$(PREFIX)/share/fish/vendor_completions.d)

BUILD ?= build
PKG_CONFIG ?= pkg-config
INSTALL ?= install
PACKAGES = sqlite3 libbsd-overlay libfyaml libb2

# Developers (a git checkout) get -Werror; a tarball that meets a newer compiler still builds.
WERROR ?= $(if $(wildcard .git),-Werror)
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wwrite-strings -Wcast-qual -Wformat=2 -Wundef -Wvla -Wswitch-enum
OPTIMISE ?= -O2 -g
HARDENING ?= -D_FORTIFY_SOURCE=2 -fstack-protector-strong
SANITIZE ?=

CFLAGS ?=
ALL_CFLAGS = -std=c17 $(WARNINGS) $(WERROR) $(OPTIMISE) $(HARDENING) -fPIE -pthread $(SANITIZE)
ALL_CPPFLAGS = -D_GNU_SOURCE -DFLOWSUP_VERSION='"$(VERSION)"' -Iinclude \
	$(shell $(PKG_CONFIG) --cflags $(PACKAGES)) $(CPPFLAGS)
ALL_LDFLAGS = -pie -pthread -Wl,-z,relro,-z,now $(SANITIZE) $(LDFLAGS)
# To load libb2, which brings OpenMP along, or libbsd, which brings libmd, takes each process longer than it
# ever spends in the few functions that are used of them: these come from the archives, where there are some.
archive = $(if $(wildcard $(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
few_of = $(patsubst -l$(1),$(call archive,$(1)),$(2))
libs_of = $(call few_of,b2,$(call few_of,bsd,$(shell $(PKG_CONFIG) --libs $(1)))) -lm
LIBS = $(call libs_of,$(PACKAGES))
# There is a worker for each run: a library that it does not use would cost memory and time in each.
WRK_LIBS = $(call libs_of,sqlite3 libb2)

LIB_SRC := $(sort $(wildcard shared/*/*.c))
SUP_SRC := $(sort $(wildcard supervisor/*.c))
WRK_SRC := $(sort $(wildcard worker/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
SUP_OBJ := $(SUP_SRC:%.c=$(BUILD)/obj/%.o)
WRK_OBJ := $(WRK_SRC:%.c=$(BUILD)/obj/%.o)

LIBFLOWSUP = $(BUILD)/libflowsup.a
LIBSUP = $(BUILD)/libsupervisor.a
LIBWRK = $(BUILD)/libworker.a
FLOWSUP = $(BUILD)/bin/flowsup
WORKER = $(BUILD)/libexec/flowsup/flowsup-worker
PROVIDERS := $(sort $(wildcard shared/providers/*.json))
PLAYBOOKS := $(sort $(wildcard shared/playbooks/*.yaml))
DATA := $(patsubst shared/%,$(BUILD)/share/flowsup/%,$(PROVIDERS) $(PLAYBOOKS))

# `make V=1` shows whole command lines.
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

.DELETE_ON_ERROR:
.PHONY: all programs clean install uninstall dist deb

all: programs

COMPLETIONS := $(addprefix $(BUILD)/completions/,bash zsh fish)

programs: $(FLOWSUP) $(WORKER) $(DATA) $(COMPLETIONS)

$(FLOWSUP): $(SUP_OBJ) $(LIBFLOWSUP)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(SUP_OBJ) $(LIBFLOWSUP) $(LIBS) $(CFLAGS)

$(WORKER): $(WRK_OBJ) $(LIBFLOWSUP)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(WRK_OBJ) $(LIBFLOWSUP) $(WRK_LIBS) $(CFLAGS)

$(LIBFLOWSUP): $(LIB_OBJ)
$(LIBSUP): $(filter-out %/main.o,$(SUP_OBJ))
$(LIBWRK): $(filter-out %/main.o,$(WRK_OBJ))
$(LIBFLOWSUP) $(LIBSUP) $(LIBWRK):
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

# The compiler's lines are remembered so that a change of flags rebuilds what it touches.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS) $(ALL_LDFLAGS) $(LIBS))' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PHONY: FORCE
FORCE:

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The steps of the schema are compiled in as strings.
$(BUILD)/gen/%.inc: shared/store/%.sql
	@mkdir -p $(@D)
	$(Q)sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(BUILD)/obj/shared/store/migrate.o: $(BUILD)/gen/schema.inc $(BUILD)/gen/schema-jobs.inc
$(BUILD)/obj/shared/store/migrate.o: ALL_CPPFLAGS += -I$(BUILD)/gen

$(BUILD)/share/flowsup/%: shared/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The program prints them from its own tables of options.
$(COMPLETIONS): $(BUILD)/completions/%: $(FLOWSUP)
	@mkdir -p $(@D)
	$(Q)$(FLOWSUP) completion $* > $@

clean:
	rm -rf $(BUILD)

include tests/tests.mk

MAN1 := $(wildcard man/*.1)
MAN5 := $(wildcard man/*.5)
MAN7 := $(wildcard man/*.7)
MAN8 := $(wildcard man/*.8)

EXAMPLES := $(wildcard examples/*.* examples/*/*.*)

install: all
	$(INSTALL) -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBEXECDIR) $(DATADIR)/providers $(DATADIR)/playbooks \
	    $(DOCDIR) $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	$(INSTALL) -m 755 $(FLOWSUP) $(DESTDIR)$(BINDIR)/flowsup
	$(INSTALL) -m 755 $(WORKER) $(DESTDIR)$(LIBEXECDIR)/flowsup-worker
	$(INSTALL) -m 644 $(PROVIDERS) $(DESTDIR)$(DATADIR)/providers
	$(INSTALL) -m 644 $(PLAYBOOKS) $(DESTDIR)$(DATADIR)/playbooks
	$(INSTALL) -m 644 README.md $(DESTDIR)$(DOCDIR)
	$(foreach f,$(EXAMPLES),$(INSTALL) -D -m 644 $(f) $(DESTDIR)$(DOCDIR)/$(f) &&) :
	$(INSTALL) -m 644 $(BUILD)/completions/bash $(DESTDIR)$(BASHDIR)/flowsup
	$(INSTALL) -m 644 $(BUILD)/completions/zsh $(DESTDIR)$(ZSHDIR)/_flowsup
	$(INSTALL) -m 644 $(BUILD)/completions/fish $(DESTDIR)$(FISHDIR)/flowsup.fish
	$(INSTALL) -d $(DESTDIR)$(UNITDIR)
	sed 's|@BINDIR@|$(BINDIR)|' supervisor/systemd/flowsup-supervisor.service.in \
	    > $(DESTDIR)$(UNITDIR)/flowsup-supervisor.service
	chmod 644 $(DESTDIR)$(UNITDIR)/flowsup-supervisor.service
	$(INSTALL) -m 644 supervisor/systemd/flowsup-supervisor.socket $(DESTDIR)$(UNITDIR)
	$(foreach s,1 5 7 8,$(if $(MAN$(s)),$(INSTALL) -d $(DESTDIR)$(MANDIR)/man$(s) && \
	    $(INSTALL) -m 644 $(MAN$(s)) $(DESTDIR)$(MANDIR)/man$(s);))

uninstall:
	rm -f $(addprefix $(DESTDIR),$(BINDIR)/flowsup $(BASHDIR)/flowsup $(ZSHDIR)/_flowsup $(FISHDIR)/flowsup.fish)
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/flowsup-supervisor.,service socket)
	rm -rf $(addprefix $(DESTDIR),$(LIBEXECDIR) $(DATADIR) $(DOCDIR))
	rm -f $(foreach s,1 5 7 8,$(patsubst man/%,$(DESTDIR)$(MANDIR)/man$(s)/%,$(MAN$(s))))

# What is shipped: the files that are under version control, or in an unpacked tarball all but the build.
DIST = $(BUILD)/flowsup-$(VERSION).tar.gz
dist:
	@mkdir -p $(BUILD)
	$(Q)if git rev-parse --git-dir >/dev/null 2>&1; then \
		git archive --format=tar.gz --prefix=flowsup-$(VERSION)/ -o $(DIST) HEAD; \
	else \
		tar -czf $(DIST) --exclude=./build --transform='s,^\.,flowsup-$(VERSION),' .; \
	fi
	@echo $(DIST)

# The Debian package, from an unpacked tarball so that the tree stays as it is; needs dpkg-dev and debhelper.
deb: dist
	$(Q)rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb && tar -xzf $(DIST) -C $(BUILD)/deb
	cd $(BUILD)/deb/flowsup-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL -u BUILD dpkg-buildpackage -b -us -uc
	@ls $(BUILD)/deb/*.deb

-include $(LIB_OBJ:.o=.d) $(SUP_OBJ:.o=.d) $(WRK_OBJ:.o=.d)
