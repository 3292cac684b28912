
BBJV¯Y²!: