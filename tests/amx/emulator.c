// The tile instructions of AMX-INT8 for processors without them: each raises SIGILL, whose handler does what the manual says and goes on
// behind it. To be preloaded into tests that were built with `--cfg amx_emulated`, which takes the unit for present. Whatever a processor
// would refuse ends the process: a configuration out of range, tiles that do not fit each other, a tile nobody configured.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };

// What `ldtilecfg` reads.
struct config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// In the static part of a thread's storage: a handler must not allocate it.
static __thread __attribute__((tls_model("initial-exec"))) struct {
    struct config config;
    uint8_t data[TILES][ROWS][ROW_BYTES];
} unit;

static void demand(int holds, const char *what, const uint8_t *code)
{
    if (holds)
        return;
    fprintf(stderr, "AMX: %s: %02x %02x %02x %02x %02x\n", what, code[0], code[1], code[2], code[3], code[4]);
    abort();
}

// A VEX-encoded instruction, apart.
struct instruction {
    unsigned opcode, prefix, reg, rm, vvvv, length;
    int in_memory, has_index;
    uintptr_t base, stride;
};

static struct instruction decode(const uint8_t *code, const greg_t *registers)
{
    // In the order of their numbers.
    static const uint8_t places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                       REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    // Three bytes of VEX, the map 0F38, W and L 0.
    demand(code[0] == 0xC4 && (code[1] & 0x1F) == 2 && (code[2] & 0x84) == 0, "no tile instruction", code);
    unsigned x = ~code[1] >> 6 & 1, b = ~code[1] >> 5 & 1, mod = code[4] >> 6;
    struct instruction it = {.opcode = code[3], .prefix = code[2] & 3, .length = 5};
    it.vvvv = ~code[2] >> 3 & 15, it.reg = code[4] >> 3 & 7, it.rm = code[4] & 7;
    it.in_memory = mod != 3;
    if (!it.in_memory)
        return it;
    unsigned base = it.rm;
    it.has_index = it.rm == 4;
    if (it.has_index) {
        unsigned sib = code[it.length++], index = (sib >> 3 & 7) | x << 3;
        base = sib & 7;
        if (index != 4)
            it.stride = (uintptr_t)registers[places[index]] << (sib >> 6);
    }
    demand(mod != 0 || base != 5, "an address without a base", code);
    it.base = registers[places[base | b << 3]];
    if (mod == 1) {
        it.base += (int8_t)code[it.length];
        it.length += 1;
    } else if (mod == 2) {
        int32_t displacement;
        memcpy(&displacement, code + it.length, 4);
        it.base += displacement;
        it.length += 4;
    }
    return it;
}

static void configure(const void *from, const uint8_t *code)
{
    static const uint8_t zeros[14];
    memset(&unit, 0, sizeof unit);
    memcpy(&unit.config, from, sizeof unit.config);
    const struct config *c = &unit.config;
    int known = c->palette == 1 && c->start_row == 0 && memcmp(c->reserved, zeros, 14) == 0;
    demand(known, "a configuration of another palette", code);
    for (int i = 0; i < 16; i++) {
        demand(c->rows[i] <= ROWS && c->row_bytes[i] <= ROW_BYTES && (i < TILES || c->rows[i] == 0), "a tile too large", code);
        demand((c->rows[i] == 0) == (c->row_bytes[i] == 0), "a tile without rows or columns", code);
    }
}

static void multiply(unsigned to, unsigned a, unsigned b, const uint8_t *code)
{
    const struct config *c = &unit.config;
    demand(to != a && to != b && a != b && b < TILES, "a tile twice", code);
    int fit = c->rows[to] == c->rows[a] && c->row_bytes[to] == c->row_bytes[b] && 4 * c->rows[b] == c->row_bytes[a];
    demand(fit, "tiles that do not fit", code);
    for (int row = 0; row < c->rows[to]; row++) {
        int32_t sums[ROW_BYTES / 4];
        memcpy(sums, unit.data[to][row], ROW_BYTES);
        for (int k = 0; k < c->row_bytes[a]; k++)
            for (int n = 0; n < c->row_bytes[to] / 4; n++)
                sums[n] += (int8_t)unit.data[a][row][k] * (int8_t)unit.data[b][k / 4][4 * n + k % 4];
        memcpy(unit.data[to][row], sums, ROW_BYTES);
    }
}

static void on_illegal_instruction(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    enum { NONE, P66, PF3, PF2 };
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    struct instruction it = decode(code, registers);
    unsigned tile = it.reg, rows = unit.config.rows[tile], row_bytes = unit.config.row_bytes[tile];
    if (it.opcode == 0x49 && it.prefix == NONE) {
        if (it.in_memory)
            configure((const void *)it.base, code); // ldtilecfg
        else
            memset(&unit, 0, sizeof unit); // tilerelease
    } else {
        demand(rows > 0, "a tile that was not configured", code);
        if (it.opcode == 0x49 && it.prefix == PF2 && !it.in_memory) {
            memset(unit.data[tile], 0, sizeof unit.data[tile]); // tilezero
        } else if (it.opcode == 0x4B && it.prefix == PF2 && it.has_index) {
            memset(unit.data[tile], 0, sizeof unit.data[tile]);
            for (unsigned row = 0; row < rows; row++) // tileloadd
                memcpy(unit.data[tile][row], (const void *)(it.base + row * it.stride), row_bytes);
        } else if (it.opcode == 0x4B && it.prefix == PF3 && it.has_index) {
            for (unsigned row = 0; row < rows; row++) // tilestored
                memcpy((void *)(it.base + row * it.stride), unit.data[tile][row], row_bytes);
        } else {
            demand(it.opcode == 0x5E && it.prefix == PF2 && !it.in_memory, "an instruction that nothing here uses", code);
            multiply(tile, it.rm, it.vvvv, code); // tdpbssd
        }
    }
    registers[REG_RIP] += it.length;
}

__attribute__((constructor)) static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}
