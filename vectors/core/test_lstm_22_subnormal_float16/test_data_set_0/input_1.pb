
BWJx’ÖÂZ\]QÔ\³Ô×s\¤?XÝO|Z+Ôq]y[1[ˆX†\#ÓgX¼XZ×ÐY]\¬ÑÖZï\ÜXR“Yö\ÌÒX‡×ORÔXòWÜ]fXß\?Og\pXÔÓÒT Öð\8X6ÅvPôZ7YüPñ\©ÑÃÔTÏbÖ