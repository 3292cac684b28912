BY_hJ<nxuuóvëvLw‹u»uªuYvów!tt‹|uL{Ê}ªaz[xÅy
‚–{úu÷‚§y³‰²ziŠ|