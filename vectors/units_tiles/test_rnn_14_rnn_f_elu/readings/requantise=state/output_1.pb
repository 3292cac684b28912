	BY_hJ6˜k–olkf©
lžNp/õ/õ’k¬nlk˜‹kùŽñ{/õ/õuku}lk>Ÿmt“gyô/õ