	BY_hJ6g1XÊ‹×M@²|[„Kb|™g<{
‡6Š]‰ÍWdj­iŽuéo"€ttmÔ‚Íbùr